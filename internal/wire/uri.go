package wire

import (
	"strings"
	"unicode"

	"github.com/tutti-project/tutti/internal/fault"
)

// MaxURIBytes is the longest URI.
const MaxURIBytes = 512

// URI names who sends or receives: pcp://NAME/TYPE. NAME is the common name of a
// certificate, TYPE what a client says it is. In a query either may be "*".
type URI string

// Broker is every broker's own URI.
const Broker URI = "pcp:///server"

// BrokerType is the client type that only brokers may use.
const BrokerType = "server"

// ExaminerType is the client type of a look at whether a broker can be reached: it takes nobody's place.
const ExaminerType = "doctor"

const scheme = "pcp://"

// NewURI joins a name and a type, which the caller has checked.
func NewURI(name, clientType string) URI { return URI(scheme + name + "/" + clientType) }

// ParseURI checks s.
func ParseURI(s string) (URI, error) {
	name, clientType, found := strings.Cut(strings.TrimPrefix(s, scheme), "/")
	switch {
	case len(s) > MaxURIBytes:
		return "", fault.New(fault.Invalid, "a PCP URI has %d bytes, at most %d are allowed", len(s), MaxURIBytes)
	case !strings.HasPrefix(s, scheme) || !found || clientType == "" || strings.Contains(clientType, "/"):
		return "", fault.New(fault.Invalid, "%.80q is not of the form pcp://NAME/TYPE", s)
	case strings.ContainsFunc(name+clientType, unicode.IsControl):
		return "", fault.New(fault.Invalid, "the PCP URI %.80q holds a control character", s)
	}
	return URI(s), nil
}

// Name is the part that a certificate proves.
func (u URI) Name() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(u), scheme), "/")
	return name
}

// Type is the part that a client chose.
func (u URI) Type() string {
	_, clientType, _ := strings.Cut(strings.TrimPrefix(string(u), scheme), "/")
	return clientType
}

// IsPattern tells that u stands for any number of clients.
func (u URI) IsPattern() bool { return u.Name() == "*" || u.Type() == "*" }

// Matches tells whether the pattern u stands for the client other.
func (u URI) Matches(other URI) bool {
	if !u.IsPattern() {
		return u == other
	}
	name, clientType := u.Name(), u.Type()
	return (name == "*" || name == other.Name()) && (clientType == "*" || clientType == other.Type())
}
