package puppet

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
)

// formGrowth is how much larger facts can be in a form: a byte becomes %25XX.
const formGrowth = 5

// CatalogRequestBytes is how large a catalog request may be whose facts may have so many bytes.
func CatalogRequestBytes(maxFacts int64) int64 { return maxFacts*formGrowth + mebibyte }

// catalogPost answers an agent that sends its facts along.
func (s *server) catalogPost(c *call) error {
	if err := c.sent([]format{{mime: "application/x-www-form-urlencoded"}}); err != nil {
		return err
	}
	body, closing, err := c.body("the catalog request is", CatalogRequestBytes(s.MaxFactsBytes), s.BodyTimeout)
	if err != nil {
		return err
	}
	defer closing()
	return s.catalog(c, c.share(body), c.r.ContentLength)
}

// catalogGet answers an agent that puts the same fields into the query.
func (s *server) catalogGet(c *call) error {
	query := c.r.URL.RawQuery
	return s.catalog(c, strings.NewReader(query), int64(len(query)))
}

func (s *server) catalog(c *call, fields io.Reader, size int64) error {
	if _, err := c.accepted(catalogFormats); err != nil {
		return err // before anything is compiled
	}
	form, err := readForm(fields, size, s.MaxFactsBytes)
	if err != nil {
		return err
	}
	visit, err := s.resolveInTurn(c, form)
	if err != nil {
		return err
	}
	c.giveBack() // the form was read; the wait for a catalog may be long
	if elsewhere, err := s.Checkin.Elsewhere(c.ctx(), visit); elsewhere || err != nil {
		if err != nil {
			return err
		}
		return c.catalogDocument(emptyCatalog(c.node, visit.Environment), s.CompilerName)
	}
	if visit.Stays {
		c.leave() // who may wait for minutes must not take the place of others; waiters have a bound of their own
	}
	answer, err := s.Checkin.Catalog(c.ctx(), visit)
	if isNotFound(err) {
		return c.noEnvironment()
	}
	if err != nil {
		return err
	}
	return c.catalogDocument(answer, s.CompilerName)
}

// readAtOnce is how many requests are read at once for each core: some wait for the disk. When
// a whole fleet comes, whatever else the server does would otherwise wait behind all of them.
const readAtOnce = 8

func (s *server) resolveInTurn(c *call, form *form) (checkin.Visit, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-c.ctx().Done():
		return checkin.Visit{}, c.ctx().Err()
	}
	request, err := s.request(c, form)
	if err != nil {
		return checkin.Visit{}, err
	}
	visit, err := s.Checkin.Resolve(c.ctx(), request)
	if errors.Is(err, checkin.ErrNoEnvironment) {
		return visit, c.noEnvironment()
	}
	return visit, err
}

// request makes the request out of the form.
func (s *server) request(c *call, form *form) (checkin.Request, error) {
	env := c.query.Get("environment")
	if env == "" {
		env = form.get("environment")
	}
	if err := c.setEnvironment(env); err != nil {
		return checkin.Request{}, err
	}
	r := checkin.Request{
		Node: c.node, Requested: c.env,
		Transaction:      form.get("transaction_uuid"),
		JobID:            form.get("job_uuid"),
		CheckEnvironment: form.get("check_environment") == "true",
		Static:           form.get("static_catalog") == "true",
		Certificate:      c.ownCertificate(),
		Packed:           c.takesGzip(),
		Stays:            !ComesBack(c.r.Header.Get("X-Puppet-Version")),
	}
	var err error
	if err = checkIDs(form); err != nil {
		return r, err
	}
	if r.ChecksumTypes, err = checksumTypes(form.get("checksum_type")); err != nil {
		return r, err
	}
	r.Facts, err = s.formFacts(c, form)
	return r, err
}

// formFacts reads the facts of a form, if it has any.
func (s *server) formFacts(c *call, form *form) (*facts.Told, error) {
	if !form.hasFacts {
		return nil, nil //nolint:nilnil // no facts is what a request says with nil
	}
	if f := form.get("facts_format"); f != formatJSON.mime && f != "pson" {
		return nil, badRequest("Unsupported facts format '%.40s'; send application/json or pson", printable(f))
	}
	told, err := s.told(c, string(form.facts))
	return &told, err
}

// checkIDs bounds what is only passed on.
func checkIDs(form *form) error {
	for _, name := range []string{"transaction_uuid", "job_uuid"} {
		id := form.get(name)
		if len(id) > 128 || printable(id) != id {
			return badRequest("%s is longer than 128 bytes or holds control characters", name)
		}
	}
	return nil
}

// checksumTypes splits the agent's list: sha256.sha384.md5.
func checksumTypes(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	types := strings.Split(list, ".")
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	if len(types) > 32 || slices.ContainsFunc(types, func(t string) bool { return t == "" || strings.ContainsFunc(t, bad) }) {
		return nil, badRequest("checksum_type is not a list of types like sha256.sha512: '%.100s'", printable(list))
	}
	return types, nil
}

// ownCertificate is the caller's certificate, if the caller is the node.
func (c *call) ownCertificate() *x509.Certificate {
	if c.actor.Name != string(c.node) || c.r.TLS == nil || len(c.r.TLS.PeerCertificates) == 0 {
		return nil
	}
	return c.r.TLS.PeerCertificates[0]
}

// emptyCatalog tells a node that its environment is another one, at no cost.
func emptyCatalog(node fleet.Certname, env fleet.Environment) checkin.Answer {
	none := []struct{}{}
	document, _ := json.Marshal(map[string]any{ // only names and empty lists
		"tags": none, "name": node, "version": nil, "code_id": nil, "catalog_uuid": uuid.NewString(),
		"catalog_format": 2, "environment": env, "resources": none, "edges": none, "classes": none,
	})
	return checkin.Answer{Document: document, Environment: env}
}

// catalogDocument writes a catalog in a format that can hold it.
func (c *call) catalogDocument(answer checkin.Answer, compiler string) error {
	offered := catalogFormats
	if answer.Rich {
		offered = richFormats
	}
	f, err := c.accepted(offered)
	if err != nil {
		return problemf(http.StatusNotAcceptable, unsupportedFormat,
			"the catalog holds rich values (Sensitive, Deferred, Binary, ...); only agents that accept %s can have it (is rich_data off?)",
			formatRichJSON.mime)
	}
	if compiler != "" {
		c.w.Header().Set("X-Puppet-Compiler-Name", compiler)
	}
	if answer.Packed {
		return c.encoded(f, answer.Document, true)
	}
	return c.document(f, answer.Document)
}
