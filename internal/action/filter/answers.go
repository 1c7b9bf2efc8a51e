package filter

import (
	"encoding/json"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

// Reply is what an expression over answers may read of one.
type Reply struct {
	Code    int    `expr:"code"`  // 0: done; 1 to 5 as MCollective has them
	State   string `expr:"state"` // the same as a word
	Node    string `expr:"node"`
	Message string `expr:"message"`
	Data    any    `expr:"data"` // results
}

// Answers is an expression over answers of actions.
type Answers struct{ program *vm.Program }

// ParseAnswers reads an expression over answers. Invalid.
func ParseAnswers(text string) (*Answers, error) {
	r := reader{}
	if !r.may("select", text) {
		return nil, r.err
	}
	refused := func(m *mistake) error {
		m.hint = strings.Replace(m.hint, examples["select"], exampleOfAnswers, 1)
		return invalid("expression over answers", text, m, "%s", m.detail)
	}
	tree, err := parser.ParseWithConfig(text, grammar())
	if err != nil {
		return nil, refused(syntaxMistake(err))
	}
	ast.Walk(&tree.Node, loosen{})
	config := grammar()
	expr.Env(Reply{})(config)
	if _, err := checker.Check(tree, config); err != nil {
		return nil, refused(syntaxMistake(err))
	}
	program, err := compiler.Compile(tree, config)
	if err != nil {
		return nil, refused(syntaxMistake(err))
	}
	return &Answers{program}, nil
}

const exampleOfAnswers = `it reads code, state, node, message and data, as in code == 0 and data.status == "stopped"`

// Hold says whether the expression holds for an answer. One for which it cannot be worked out, such as a comparison with a field that is not
// there, does not hold.
func (a *Answers) Hold(r Reply, data []byte) bool {
	if len(data) > 0 && json.Unmarshal(data, &r.Data) != nil {
		return false
	}
	holds, err := expr.Run(a.program, r)
	return err == nil && holds == true
}
