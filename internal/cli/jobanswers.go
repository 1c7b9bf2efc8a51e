package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxAnswers is the largest record of a call that nodes are taken from, in bytes.
const maxAnswers = 256 << 20

// readTake reads the expression of --take; nil: none is given.
func readTake(text string) (*filter.Answers, error) {
	if text == "" {
		return nil, nil
	}
	taken, err := filter.ParseAnswers(text)
	if err != nil {
		return nil, usageError{err}
	}
	return taken, nil
}

// startsAsJSON says whether an object or a list comes, which no name begins as.
func startsAsJSON(from *bufio.Reader) bool {
	for {
		next, err := from.Peek(1)
		if err != nil {
			return false
		}
		if !strings.ContainsRune(" \t\r\n", rune(next[0])) {
			return next[0] == '{' || next[0] == '['
		}
		_, _ = from.Discard(1)
	}
}

// earlierAnswer is an answer as -o json and -o jsonl print it, a change of a job's run, a whole call or job, or mco's.
type earlierAnswer struct {
	api.ActionAnswer
	Sender     string          `json:"sender"`
	StatusCode int             `json:"statuscode"`
	StatusMsg  string          `json:"statusmsg"`
	Run        *api.JobRun     `json:"run"`
	Job        json.RawMessage `json:"job"`
	Answers    []earlierAnswer `json:"answers"`
	Runs       []earlierAnswer `json:"runs"`
}

// namesInAnswers are the nodes of answers that are taken: those that are ok, if nothing else is wanted. The last of a node counts.
func namesInAnswers(what string, from io.Reader, taken *filter.Answers) ([]string, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxAnswers+1))
	if err != nil {
		return nil, usageError{fault.Wrap(fault.Invalid, err, "cannot read the answers in %s: %v", what, err)}
	}
	if len(text) > maxAnswers {
		return nil, usageError{fault.New(fault.Invalid, "%s: answers have at most %d bytes", what, maxAnswers)}
	}
	c := choice{taken: taken, holds: map[string]bool{}}
	if err := c.read(what, text); err != nil {
		return nil, err
	}
	var names []string
	for _, node := range c.nodes {
		if c.holds[node] {
			names = append(names, node)
		}
	}
	if len(names) == 0 {
		return nil, fault.New(fault.NotFound, "no node is meant: of the answers of %s in %s none is taken", fault.Count(len(c.nodes), "node"), what)
	}
	return names, nil
}

// choice is which nodes of answers are taken.
type choice struct {
	taken *filter.Answers
	nodes []string // that answered, as they come
	holds map[string]bool
}

// read reads one document, or one for each line.
func (c *choice) read(what string, text []byte) error {
	if json.Valid(text) {
		return c.document(what, text)
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := c.document(fmt.Sprintf("%s, line %d", what, number), line); err != nil {
			return err
		}
	}
	return nil
}

func (c *choice) document(where string, text []byte) (err error) {
	var list []earlierAnswer
	if text = bytes.TrimSpace(text); text[0] == '[' {
		err = json.Unmarshal(text, &list)
	} else {
		list = make([]earlierAnswer, 1)
		err = json.Unmarshal(text, &list[0])
	}
	if err != nil {
		return usageError{fault.Wrap(fault.Invalid, err, "%s: it is no answer of a call: %v", where, err)}
	}
	for _, one := range list {
		if err := c.add(where, one); err != nil {
			return err
		}
	}
	return nil
}

func (c *choice) add(where string, one earlierAnswer) error {
	switch inner := append(one.Answers, one.Runs...); {
	case len(inner) > 0:
		for _, each := range inner {
			if err := c.add(where, each); err != nil {
				return err
			}
		}
		return nil
	case one.Run != nil:
		one.ActionAnswer = api.ActionAnswer{Node: one.Run.Node, State: one.Run.State, Message: one.Run.Reason}
	case one.Sender != "":
		one.ActionAnswer = api.ActionAnswer{
			Node: one.Sender, State: action.Code(min(max(one.StatusCode, 0), int(action.Other))).String(), Message: one.StatusMsg, Data: one.Data,
		}
	case one.Node == "" && (one.Job != nil || one.Answers != nil || one.Runs != nil):
		return nil // it tells of no node
	}
	if _, err := fleet.ParseCertname(one.Node); err != nil {
		return usageError{fault.Wrap(fault.Invalid, err, "%s: it is no answer of a call: it names no node", where)}
	}
	var code action.Code
	if code.UnmarshalText([]byte(one.State)) != nil {
		code = answerOfRun(runResult{JobRun: api.JobRun{Node: one.Node, State: one.State}}).Code
	}
	if _, known := c.holds[one.Node]; !known {
		c.nodes = append(c.nodes, one.Node)
	}
	c.holds[one.Node] = code == action.Done
	if c.taken != nil {
		c.holds[one.Node] = c.taken.Hold(filter.Reply{Code: int(code), State: one.State, Node: one.Node, Message: one.Message}, one.Data)
	}
	return nil
}
