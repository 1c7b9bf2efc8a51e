package orders

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Aborted is the error of an action that could not do what it was asked for. Its message is told as it is.
type Aborted struct {
	Message string
	Data    jsontext.Value // for whoever asked; nil: none
}

// Error implements error.
func (a *Aborted) Error() string { return a.Message }

// ActionResults are the results of a program that does one action: JSON on standard output. With another exit code than 0 it was aborted:
// standard error says why, and standard output may have data.
func ActionResults(o Output) (jsontext.Value, error) {
	if o.Exit == nil || *o.Exit == 0 || o.Ended != "" {
		return Results(o)
	}
	aborted := &Aborted{Message: strings.TrimSpace(readable(o.Stderr))}
	if aborted.Message == "" {
		aborted.Message = "it failed without a word"
	}
	if data := jsontext.Value(bytes.TrimSpace(o.Stdout)); len(data) > 0 && data.IsValid() {
		aborted.Data = data
	}
	return nil, aborted
}

// failureOf is the data of the message that says why an order gave no results: text, or what an aborted action says itself. It has a code
// where the text alone does not tell it; other controllers do not know that field.
func failureOf(o Order, err error, text string) pxp.Failure {
	f := pxp.Failure{Transaction: o.Transaction, ID: o.Message, Description: text}
	if aborted, ok := errors.AsType[*Aborted](err); ok {
		f.Description, f.Code, f.Results = aborted.Message, uint8(action.Aborted), aborted.Data
	} else if code := action.CodeOf(err); code == action.MissingData {
		f.Code = uint8(code)
	}
	return f
}
