package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Op is one thing that the API can do: a Request is sent, a Response comes back. Each is one value in the file of its
// area; its handler, the client's call, the reference and the OpenAPI document are all made from that value.
type Op[Request, Response any] struct{ said *Operation }

// Stream is an operation that is answered by server-sent events, each with an Event as its data.
type Stream[Request, Event any] Op[Request, Event]

// Upload is an operation whose body is a stream of bytes of the type Media.
type Upload[Response any] Op[Nothing, Response]

// Kind says whether an operation changes something.
type Kind string

// The kinds.
const (
	Question Kind = "question" // nothing is changed
	Act      Kind = "act"      // the audit log has it
)

// Nothing is the request or the response of an operation that has none.
type Nothing struct{}

// Operation is what is said of an operation, whatever its types are.
type Operation struct {
	Name       string // "thing.act", the name in permissions, logs and docs
	Method     string
	Path       string // below Prefix; {name} is a path field of the request
	Permission fleet.Permission
	Kind       Kind
	Summary    string
	MaxBody    int64        // the largest JSON body, in bytes; 0: the one that all have
	Media      string       // of a body that is a stream of bytes; empty: it is JSON, or there is none
	Request    reflect.Type // nil: there is none
	Response   reflect.Type // nil: 204 No Content
	Streams    bool         // the answer is server-sent events, with a Response each
}

// op, stream and upload make an operation of what its file says; its types say the rest.
func op[Request, Response any](said Operation) Op[Request, Response] {
	said.Request, said.Response = typeOf[Request](), typeOf[Response]()
	return Op[Request, Response]{&said}
}

func stream[Request, Event any](said Operation) Stream[Request, Event] {
	said.Streams = true
	return Stream[Request, Event](op[Request, Event](said))
}

func upload[Response any](said Operation) Upload[Response] {
	return Upload[Response](op[Nothing, Response](said))
}

// Operation describes op.
func (op Op[Request, Response]) Operation() Operation { return *op.said }

// Operation describes op.
func (op Stream[Request, Event]) Operation() Operation { return *op.said }

// Operation describes op.
func (op Upload[Response]) Operation() Operation { return *op.said }

// typeOf is nil for Nothing.
func typeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[Nothing]() {
		return t
	}
	return nil
}

// Uploads says whether the body of op is a stream of bytes.
func (op Operation) Uploads() bool { return op.Media != "" }

// BodyLimit is the largest body that op takes, in bytes; 0: it takes none.
func (op Operation) BodyLimit() int64 {
	switch {
	case op.Uploads():
		return MaxUpload
	case op.MaxBody > 0:
		return op.MaxBody
	case hasBody(op.Request):
		return MaxBody
	}
	return 0
}

// Call performs op on the server of c.
func (op Op[Request, Response]) Call(ctx context.Context, c *Client, request Request) (response Response, err error) {
	err = c.call(ctx, op.said, request, &response)
	return response, err
}

// Send performs op on the server of c with what body gives.
func (op Upload[Response]) Send(ctx context.Context, c *Client, body io.Reader) (response Response, err error) {
	answer, err := c.open(ctx, *op.said, Nothing{}, body, op.said.Media)
	if err != nil {
		return response, err
	}
	defer func() { _ = answer.Body.Close() }()
	err = c.decode(op.said.Name, answer, &response)
	return response, err
}

// call performs op, and puts its answer into response.
func (c *Client) call(ctx context.Context, op *Operation, request, response any) error {
	answer, err := c.perform(ctx, *op, request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	return c.decode(op.Name, answer, response)
}

// open begins the stream; the caller closes the answer's body.
func (op Stream[Request, Event]) open(ctx context.Context, c *Client, request Request) (*http.Response, error) {
	answer, err := c.perform(ctx, *op.said, request)
	if err != nil {
		return nil, err
	}
	sent, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || sent == "text/html" || sent == jsonType { // a proxy's page, or another program's
		_ = answer.Body.Close()
		return nil, c.foreign(answer, op.said.Name, errors.New("it is no stream of events"))
	}
	return answer, nil
}

// All calls a list operation page by page and hands every item to each.
func All[Request, T any](
	ctx context.Context, c *Client, op Op[Request, List[T]], request func(after string) Request, each func(T) error,
) error {
	for after := ""; ; {
		page, err := op.Call(ctx, c, request(after))
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := each(item); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		after = page.Next
	}
}
