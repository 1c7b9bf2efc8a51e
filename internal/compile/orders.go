package compile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Orders makes the orders for compilers.
type Orders struct {
	Inputs     Inputs
	Classifier Classifier // nil: nodes are not classified
	// ServerFacts gives $server_facts for a version of an environment; nil: there are none.
	ServerFacts func(ctx context.Context, env fleet.Environment, version fleet.Digest) (json.RawMessage, error)
	Trust       Trust // for compilations that nobody asked for with a certificate; nil: see localTrusted
}

// Build makes the order for c from what is known now, and says which facts it
// holds. It returns *Error when the order can never be made of these inputs.
func (o Orders) Build(ctx context.Context, c Compilation) (order Order, factsSeq int64, err error) {
	facts, seq, err := o.Inputs.Facts(ctx, c.Node)
	if err != nil {
		return Order{}, 0, inputError(err, "no facts of %s are known: run `puppet agent -t` or `puppet facts upload` there", c.Node)
	}
	order = Order{
		Node: c.Node, Environment: c.Environment, Version: c.Version,
		Facts: facts, Trusted: c.Trusted, Transaction: c.Transaction, Reach: c.Reach,
	}
	if len(order.Trusted) == 0 {
		if order.Trusted, err = o.trusted(ctx, c.Node); err != nil {
			return Order{}, 0, err
		}
	}
	if o.ServerFacts != nil {
		if order.ServerFacts, err = o.ServerFacts(ctx, c.Environment, c.Version); err != nil {
			return Order{}, 0, err
		}
	}
	if o.Classifier != nil {
		given, err := o.Classifier.Classify(ctx, c.Node, c.Environment, facts, order.Trusted)
		if err != nil {
			return Order{}, 0, inputError(err, "%s cannot be classified: %s", c.Node, fault.Detail(err))
		}
		order.Classes, order.Parameters, order.Data, order.Given = given.Classes, given.Parameters, given.Data, given.Given
	}
	return order, seq, nil
}

// digest names an order for an engine: equal ones give the same catalog, or the same error, unless
// the code asks the world outside.
func (o Order) digest(engine string) fleet.Digest {
	o.Transaction = ""
	text, err := json.Marshal(o)
	if err != nil {
		return "" // a part is no JSON: the compiler says so
	}
	return fleet.DigestOf(append(text, engine...))
}

// trusted is $trusted of a node that did not ask itself.
func (o Orders) trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	if o.Trust != nil {
		trusted, err := o.Trust.Trusted(ctx, node)
		if fault.Of(err) != fault.NotFound || err == nil {
			return trusted, err
		}
	}
	return localTrusted(node), nil
}

// inputError tells what trying again cannot mend from what it can.
func inputError(err error, format string, args ...any) error {
	switch fault.Of(err) {
	case fault.NotFound, fault.Invalid:
		return &Error{Cause: CauseInput, Message: fmt.Sprintf(format, args...)}
	case fault.Internal, fault.Denied, fault.Conflict, fault.Unavailable:
	}
	return fmt.Errorf("read the inputs: %w", err)
}

// localTrusted is $trusted of a node that did not show a certificate for this
// compilation, in Puppet's words.
func localTrusted(node fleet.Certname) json.RawMessage {
	hostname, domain, _ := strings.Cut(string(node), ".")
	return fmt.Appendf(nil, `{"authenticated":"local","certname":%q,"extensions":{},"hostname":%q,"domain":%q,"external":{}}`,
		node, hostname, domain)
}

// asError finds the compilation error in err; nil when trying again may help.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}
