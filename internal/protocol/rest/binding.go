package rest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tutti-project/tutti/api"
)

// performer is what an operation does once it is allowed. It calls begin when the
// request is read and right, and before it does anything.
type performer func(w http.ResponseWriter, r *http.Request, begin func(request any) error) (any, error)

// streamed is the answer of an operation that has written it.
type streamed struct{}

// binding is an operation with what it does.
type binding struct {
	op   api.Operation
	act  performer
	each bool                        // the operation asks for each object, because the request does not name it
	may  func(context.Context) error // instead of the operation's permission; may be nil
}

// area answers the operations of one area.
type area interface{ bindings() []binding }

// answer binds an operation to a function of its types.
func answer[Request, Response any](
	op api.Op[Request, Response], act func(context.Context, Request) (Response, error),
) binding {
	return raw(op, typed(act))
}

// acting is answer for an act whose audit entry and right depend on what the request
// says: prepare checks both before anything begins.
func acting[Request, Response any](
	op api.Op[Request, Response], prepare func(context.Context, Request) (about string, err error), act func(context.Context, Request) (Response, error),
) binding {
	return raw(op, func(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
		var request Request
		if err := api.Bind(r, &request); err != nil {
			return nil, err
		}
		about, err := prepare(r.Context(), request)
		if err != nil {
			return nil, err
		}
		if err := begin(subject{about}); err != nil {
			return nil, err
		}
		return act(r.Context(), request)
	})
}

// raw binds an operation whose body or answer is a stream, or that begins in its own time.
func raw(op interface{ Operation() api.Operation }, act performer) binding {
	return binding{op: op.Operation(), act: act}
}

// each says that the operation asks for each object: lists show what their caller may see.
func each(b binding) binding {
	b.each = true
	return b
}

// when says who may do an operation, if more than one permission will do.
func when(may func(context.Context) error, b binding) binding {
	b.may = may
	return b
}

// typed makes an action of a function from request type to response type.
func typed[Request, Response any](act func(context.Context, Request) (Response, error)) performer {
	return func(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
		var request Request
		if err := api.Bind(r, &request); err != nil {
			return nil, err
		}
		if err := begin(request); err != nil {
			return nil, err
		}
		return act(r.Context(), request)
	}
}

// complete returns nil when every operation is bound once, and nothing else is.
func complete(operations []api.Operation, bound []binding) error {
	handlers := map[string]int{}
	for _, b := range bound {
		handlers[b.op.Name]++
	}
	for _, op := range operations {
		if n := handlers[op.Name]; n != 1 {
			return fmt.Errorf("operation %s has %d handlers", op.Name, n)
		}
		delete(handlers, op.Name)
	}
	for name := range handlers {
		return fmt.Errorf("handler %s has no operation", name)
	}
	return nil
}
