package compile

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Inventory is what code may ask of the whole fleet while it compiles. It only
// reads. Both methods may be called concurrently. Invalid is a mistake in the
// code, and its detail is shown to the code's author; after any other error the
// compilation fails as one that could not be tried, so that nobody takes an
// inventory that does not answer for an empty one.
type Inventory interface {
	// Exported gives what c collects: exported resources in the newest catalogs of
	// active nodes other than c.Node, in all environments, by exporter and title.
	Exported(ctx context.Context, c Collector) ([]Exported, error)
	// Query gives a JSON array of rows, as PuppetDB has them. Without an order of its
	// own the rows of a query are sorted, so that equal rows are an equal answer.
	Query(ctx context.Context, q Query) (json.RawMessage, error)
}

// Collector is one collector of exported resources.
type Collector struct {
	Node     fleet.Certname  // who collects
	Type     string          // of the resources, as in a catalog: Concat::Fragment
	Filter   json.RawMessage // a condition on resources in the AST query language; null: all
	MaxBytes int64           // a larger answer is Invalid
	Reach    string          // see Order
}

// Exported is a resource that a collector found.
type Exported struct {
	Exporter   fleet.Certname  `json:"certname"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Parameters json.RawMessage `json:"parameters"`
}

// Query is one call of puppetdb_query.
type Query struct {
	Text     string // PQL, or the AST query language as JSON
	MaxBytes int64  // a larger answer is Invalid
	Reach    string // see Order: rows of other nodes are not there; a query for what belongs to no node is Invalid
}

// Collected is a resource of a catalog that another node exported.
type Collected struct {
	Type, Title string
	Exporter    fleet.Certname
}

// Question is what code asked while it compiled: an input, like a fact. The same
// question with another answer may make another catalog.
type Question struct {
	Kind   QuestionKind
	Text   string       // of a query; of a collector a JSON object with type and filter
	Rows   int          // how many the answer had
	Answer fleet.Digest // of the answer's JSON
	// Refused says that there was no answer: Answer is of the refusal's words.
	Refused bool `json:",omitempty"`
}

// RefusedFor is a question that the inventory refused, with the words of the refusal as its answer: code may go on without rows, and
// gives another catalog where it is answered.
func (q Question) RefusedFor(err error) Question {
	q.Rows, q.Refused, q.Answer = 0, true, fleet.DigestOf([]byte("refused: "+fault.Detail(err)))
	if len(q.Text) > maxRefusedBytes {
		q.Text = strings.ToValidUTF8(q.Text[:maxRefusedBytes], "") // another question: its refusal differs, and the catalog is compiled again
	}
	return q
}

// maxRefusedBytes bounds what is kept of a question that was refused; it may have been refused for its size.
const maxRefusedBytes = 64 << 10

// QuestionKind tells questions apart.
type QuestionKind string

// The kinds of question.
const (
	AskedCollect QuestionKind = "collect"
	AskedQuery   QuestionKind = "query"
)
