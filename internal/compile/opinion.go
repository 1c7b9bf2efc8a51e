package compile

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fleet"
)

// MaxRecordedBytes is how much of the answers to one compilation's questions is kept.
const MaxRecordedBytes = 4 << 20

// Recorded is a question and what it was answered while a catalog was compiled.
type Recorded struct {
	Kind QuestionKind    `json:"kind"`
	Text string          `json:"text"`
	Rows json.RawMessage `json:"rows"`
}

// recorded pairs questions with their answers; ok unless an answer is not kept.
func recorded(asked []Question, answers map[fleet.Digest]json.RawMessage) (list []Recorded, ok bool) {
	for _, q := range asked {
		rows, kept := answers[q.Answer]
		if !kept {
			return nil, false
		}
		list = append(list, Recorded{Kind: q.Kind, Text: q.Text, Rows: rows})
	}
	return list, true
}

// Opinion is what plain Puppet gives for an order.
type Opinion struct {
	Catalog    json.RawMessage // as a stock server writes it; paths of this machine are replaced as in Outcome
	Exported   json.RawMessage
	Err        *Error   // it does not compile: Message is Puppet's
	Unrecorded []string // what was asked of the inventory that no worker asked
	Cost       Cost
}

// Plain compiles orders with plain Puppet: no code of the compiler's workers has a part in it.
// Questions of the code to the inventory are answered from answers. An error that is no *Error says that it could not be tried.
type Plain interface {
	Opinion(ctx context.Context, order Order, answers []Recorded) (Opinion, error)
}
