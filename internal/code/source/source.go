package source

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Source is a repository whose branches become environments.
type Source struct {
	Name       string
	URL        string        // for people: without a password
	Prefix     string        // goes before the names of environments, with an underscore; empty: none
	Branches   []string      // patterns of branches; empty: all
	Submodules bool          // they are fetched, too
	NoModules  bool          // its Puppetfile is not resolved
	Purge      bool          // the environment of a deleted branch is deleted
	Interval   time.Duration // how often it is looked at without being told; 0: never
	AddedAt    time.Time
	AddedBy    string
	Secrets    Secrets `json:"-"`

	// What was found when the repository was looked at last. No row keeps it: a server that starts looks at once.
	LookedAt time.Time `json:"-"` // zero: never
	Trouble  string    `json:"-"` // why that did not succeed
	Refused  []string  `json:"-"` // branches of which no environment can be made, and why
}

// Secrets are what nobody is shown. They are stored sealed.
type Secrets struct {
	URL        string `json:"url"`                   // as it was given: it may have a password
	Key        string `json:"key,omitempty"`         // a private key for ssh
	KnownHosts string `json:"known_hosts,omitempty"` // lines of ssh's file of this name
	Webhook    string `json:"webhook,omitempty"`     // what webhooks are signed with
}

// The bounds of a source.
const (
	MaxSources    = 100
	maxName       = 64
	maxPatterns   = 50
	maxPattern    = 200
	maxSecret     = 16 << 10
	minWebhook    = 16 // shorter secrets can be guessed
	LeastInterval = 10 * time.Second
)

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`)
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9_]*$`)
)

// Check tells what cannot be used. Whether the URL can is known to whoever fetches.
func (s Source) Check() error {
	switch {
	case !nameForm.MatchString(s.Name) || len(s.Name) > maxName:
		return fault.New(fault.Invalid, "the source's name %.80q is not 1 to %d of a-z, 0-9, dot, hyphen and underscore", s.Name, maxName)
	case !prefixForm.MatchString(s.Prefix) || len(s.Prefix) > maxName:
		return fault.New(fault.Invalid, "the prefix %.80q is not made of letters, digits and underscores, at most %d", s.Prefix, maxName)
	case len(s.Branches) > maxPatterns:
		return fault.New(fault.Invalid, "there are %d patterns of branches, at most %d are allowed", len(s.Branches), maxPatterns)
	case s.Interval != 0 && s.Interval < LeastInterval:
		return fault.New(fault.Invalid, "the interval %s is shorter than %s; 0 means never", s.Interval, LeastInterval)
	case s.Secrets.Webhook != "" && len(s.Secrets.Webhook) < minWebhook:
		return fault.New(fault.Invalid, "the webhook's secret has %d bytes, at least %d are needed: openssl rand -hex 32", len(s.Secrets.Webhook), minWebhook)
	case strings.ContainsRune(s.Secrets.Key+s.Secrets.KnownHosts, 0):
		return fault.New(fault.Invalid, "the key or the known hosts hold a zero byte")
	case s.Secrets.Key != "" && !strings.Contains(s.Secrets.Key, "PRIVATE KEY-----"):
		return fault.New(fault.Invalid, "the key is no private key of ssh: make one with ssh-keygen -t ed25519 -N '' -f FILE, and give the file without .pub")
	}
	for _, text := range []string{s.Secrets.Webhook, s.Secrets.Key, s.Secrets.KnownHosts} {
		if len(text) > maxSecret {
			return fault.New(fault.Invalid, "the key, the known hosts and the webhook's secret have at most %d bytes each", maxSecret)
		}
	}
	_, err := s.filter()
	return err
}

// Environment is the environment that a branch becomes. wanted is false for a branch that the patterns leave out.
func (s Source) Environment(branch string) (env fleet.Environment, wanted bool, err error) {
	f, err := s.filter()
	if err != nil || !f.wants(branch) {
		return "", false, err
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, branch)
	if s.Prefix != "" {
		name = s.Prefix + "_" + name
	}
	env, err = fleet.ParseEnvironment(name)
	return env, true, err
}

// filter is patterns, ready to be used.
type filter struct{ in, out []*regexp.Regexp }

// filter reads the patterns: a glob, where * stands for anything, or /a regular expression/; with ! before it: not these.
func (s Source) filter() (f filter, err error) {
	for _, text := range s.Branches {
		pattern, not := strings.CutPrefix(text, "!")
		if pattern == "" || len(pattern) > maxPattern {
			return f, fault.New(fault.Invalid, "the pattern of branches %.80q is empty or has more than %d bytes", text, maxPattern)
		}
		expression := globbed(pattern)
		if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
			expression = `(?:` + pattern[1:len(pattern)-1] + `)`
		}
		compiled, err := regexp.Compile(`^` + expression + `$`)
		if err != nil {
			return f, fault.New(fault.Invalid, "the pattern of branches %.80q is no regular expression: %v", text, err)
		}
		if not {
			f.out = append(f.out, compiled)
		} else {
			f.in = append(f.in, compiled)
		}
	}
	return f, nil
}

func globbed(pattern string) string {
	return strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
}

func (f filter) wants(branch string) bool {
	matches := func(r *regexp.Regexp) bool { return r.MatchString(branch) }
	return (len(f.in) == 0 || slices.ContainsFunc(f.in, matches)) && !slices.ContainsFunc(f.out, matches)
}

// Sealer makes secrets unreadable to who has only the database.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

func (s Secrets) seal(with Sealer) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return with.Seal(text)
}

func openSecrets(sealed []byte, with Sealer) (s Secrets, err error) {
	text, err := with.Open(sealed)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
