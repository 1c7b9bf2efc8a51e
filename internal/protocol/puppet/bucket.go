package puppet

import (
	"context"
	"crypto/md5" //nolint:gosec // agents name backups by it when they are told to
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxBackupPath bounds where on the node a backup is said to come from.
const maxBackupPath = 4096

// digests are the algorithms that Puppet's digest_algorithm setting knows.
var digests = map[string]func() hash.Hash{
	"md5":    md5.New,
	"sha256": sha256.New,
	"sha224": sha256.New224,
	"sha384": sha512.New384,
	"sha512": sha512.New,
}

// backupKey is what a bucket route names: sha256/<sum>[/<path on the node>].
type backupKey struct {
	algorithm string
	sum       string
	path      string
}

func parseBackupKey(key string) (backupKey, error) {
	var b backupKey
	var rest string
	b.algorithm, rest, _ = strings.Cut(key, "/")
	b.sum, b.path, _ = strings.Cut(rest, "/")
	if _, ok := digests[b.algorithm]; !ok {
		return b, badRequest("Unsupported checksum type '%.40s'; md5, sha224, sha256, sha384 and sha512 are known", printable(b.algorithm))
	}
	if len(b.path) > maxBackupPath {
		return b, badRequest("the backup's path has %d bytes, at most %d are allowed", len(b.path), maxBackupPath)
	}
	return b, nil
}

// checkSum makes sure that the sum is one of its algorithm.
func (b backupKey) checkSum() error { return checkSum(b.algorithm, b.sum) }

func checkSum(algorithm, sum string) error {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != digests[algorithm]().Size() || strings.ToLower(sum) != sum {
		return badRequest("Invalid checksum '%.140s': %s has %d lower-case hexadecimal digits",
			printable(sum), algorithm, 2*digests[algorithm]().Size())
	}
	return nil
}

// backups is the filebucket: what nodes keep of files before Puppet changes them.
type backups struct {
	bucket   filebucket.Store
	blobs    blobs
	rules    func() BackupRules
	roles    func(context.Context, fleet.Actor) (fleet.Actor, error)
	uploads  *gate // for content on its way
	rooms    rooms
	most     int64         // bytes of one
	patience time.Duration // how long one piece of content may take to come
	now      func() time.Time
}

// named looks up what a route names.
func (k *backups) named(c *call) (key backupKey, digest fleet.Digest, size int64, err error) {
	if key, err = parseBackupKey(c.key); err != nil {
		return key, "", 0, err
	}
	if err := key.checkSum(); err != nil {
		return key, "", 0, err
	}
	digest, size, err = k.backedUp(c, key.algorithm, key.sum)
	if isNotFound(err) {
		err = c.notThere()
	}
	return key, digest, size, err
}

// head tells whether a content needs to be sent. An agent that names a
// path is about to skip sending, so that the path is remembered here as it
// would be with the content.
func (k *backups) head(c *call) error {
	key, digest, size, err := k.named(c)
	if err != nil {
		return err
	}
	missing, err := k.blobs.store.Missing(c.ctx(), []fleet.Digest{digest})
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return c.notThere() // let the agent send it again
	}
	if key.path != "" {
		switch err := k.save(c, key, digest, size); {
		case errors.Is(err, filebucket.ErrFull):
			return c.notThere() // this answer has no words; the one to the content has
		case err != nil:
			return err
		}
	}
	c.w.Header().Set("Content-Type", formatBinary.contentType)
	c.head(http.StatusOK, 0)
	return nil
}

// put stores a content, if it is what its sum says. It may take as long as
// bytes trickle in, so its place is among the uploads and not among the files.
func (k *backups) put(c *call) error {
	if err := c.sent(fileFormats); err != nil {
		return err
	}
	key, err := parseBackupKey(c.key)
	if err != nil {
		return err
	}
	if err := key.checkSum(); err != nil {
		return err
	}
	c.leave()
	if err := k.uploads.enter(c.ctx()); err != nil {
		return err
	}
	defer k.uploads.leave()
	room, err := k.openRoom(c, key)
	if err != nil {
		return full(err)
	}
	defer room.close()
	body, closing, err := c.body("the backup is", k.most, k.patience)
	if err != nil {
		return err
	}
	defer closing()
	digest, size, err := k.blobs.store.Put(c.ctx(), &summed{
		r: body, sum: digests[key.algorithm](), key: key,
		pace: func() { c.readDeadline(k.patience) }, room: room,
	})
	if err != nil {
		return putError(err)
	}
	if err := k.save(c, key, digest, size); err != nil {
		return full(err)
	}
	c.w.Header().Set("Content-Type", formatBinary.contentType)
	return c.whole(nil)
}

// putError finds the reader's own error in what the store made of it.
func putError(err error) error {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	return err
}

func (k *backups) save(c *call, key backupKey, digest fleet.Digest, size int64) error {
	return k.bucket.SaveBackup(c.ctx(), filebucket.Backup{
		Algorithm: key.algorithm, Sum: key.sum, Blob: digest, Size: size,
		Node: fleet.Certname(c.actor.Name), Path: key.path, At: k.now(),
	}, k.rules().Quota)
}

// summed passes a body through and replaces its end by an error when its sum is
// another one, or its node has no room for it: so the store never keeps it.
type summed struct {
	r    io.Reader
	sum  hash.Hash
	key  backupKey
	pace func()
	room *room
}

func (s *summed) Read(p []byte) (int, error) {
	s.pace() // large bodies may take long, as long as they keep coming
	n, err := s.r.Read(p)
	if err := s.room.take(int64(n)); err != nil {
		return 0, full(err)
	}
	_, _ = s.sum.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(s.sum.Sum(nil)); got != s.key.sum {
			return n, badRequest("the content has the %s %s and not %s", s.key.algorithm, got, s.key.sum)
		}
	}
	return n, err
}

// get returns a content, its difference from another, or a list.
func (k *backups) get(c *call) error {
	if _, err := c.accepted(fileFormats); err != nil {
		return err
	}
	if c.query.Get("list_all") == "true" {
		return k.list(c)
	}
	key, digest, _, err := k.named(c)
	if err != nil {
		return err
	}
	if other := c.query.Get("diff_with"); other != "" {
		return k.difference(c, key, digest, other)
	}
	return k.blobs.send(c, digest)
}

// maxListed bounds a list of backups.
const maxListed = 10_000

// list lists what the asking node backed up: sum, time (UTC), path; by
// path and then time. Other nodes' backups are none of its business.
func (k *backups) list(c *call) error {
	key, err := parseBackupKey(c.key)
	if err != nil {
		return err
	}
	node, err := fleet.ParseCertname(c.actor.Name)
	if err != nil || c.actor.Kind != fleet.NodeActor {
		return fault.New(fault.Denied, "only a node lists its backups here")
	}
	from, err := parseDate(c, "fromdate")
	if err != nil {
		return err
	}
	to, err := parseDate(c, "todate")
	if err != nil {
		return err
	}
	all, err := k.bucket.Backups(c.ctx(), node, from, to, maxListed)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", formatBinary.contentType)
	return c.whole(listing(all, key.algorithm))
}

// dateLayouts are the ways people write a date for puppet filebucket.
var dateLayouts = []string{
	time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly, "2006-01-02T15:04:05",
	"15:04:05 2-1-2006", "15:4:5 2-1-2006", "2 Jan 2006", time.RFC1123Z,
}

func parseDate(c *call, name string) (time.Time, error) {
	value := c.query.Get(name)
	if value == "" {
		return time.Time{}, nil
	}
	for _, layout := range dateLayouts {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return time.Time{}, badRequest("Error while parsing '%s': '%.60s' is no date like %s", name, printable(value), time.DateTime)
}
