package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// MaxBody is the largest JSON body of a request, in bytes: a manifest of
// 200 000 files has about 40 MB.
const MaxBody = 64 << 20

// MaxLogin is the largest body of who logs in, in bytes: anybody may send one.
const MaxLogin = 8 << 10

// MaxUpload is the largest body of an operation whose body is no JSON, in bytes; a larger upload is sent in parts.
const MaxUpload = 8 << 30

// Bind fills the request value that target points to from r: path fields, query
// fields, and the JSON body if the type has json fields. Unknown query and body
// fields are errors: a misspelt filter must not be a missing one.
func Bind(r *http.Request, target any) error {
	value := reflect.ValueOf(target).Elem()
	known := map[string]bool{}
	hasBody := false
	for field, into := range value.Fields() {
		if name, ok := field.Tag.Lookup("path"); ok {
			into.SetString(r.PathValue(name))
		}
		if name, ok := field.Tag.Lookup("query"); ok {
			known[name] = true
			if err := setQuery(into, name, r.URL.Query()); err != nil {
				return err
			}
		}
		if _, ok := field.Tag.Lookup("json"); ok {
			hasBody = true
		}
	}
	for name := range r.URL.Query() {
		if !known[name] {
			return fault.New(fault.Invalid, "unknown query field %.80q", name)
		}
	}
	if !hasBody {
		return nil
	}
	return bindBody(r, value)
}

func setQuery(into reflect.Value, name string, query url.Values) error {
	text := query.Get(name)
	if text == "" {
		return nil
	}
	switch into.Kind() { //nolint:exhaustive // fields of queries are of these kinds
	case reflect.Int:
		number, err := strconv.Atoi(text)
		if err != nil {
			return fault.New(fault.Invalid, "the query field %s must be a whole number, not %.40q", name, text)
		}
		into.SetInt(int64(number))
	case reflect.Bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return fault.New(fault.Invalid, "the query field %s must be true or false, not %.40q", name, text)
		}
		into.SetBool(yes)
	default:
		into.SetString(text)
	}
	return nil
}

// bindBody decodes the body into value's json fields and keeps the others.
func bindBody(r *http.Request, value reflect.Value) error {
	before := reflect.New(value.Type()).Elem()
	before.Set(value)
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, MaxBody)) // an operation may allow less: see BodyLimit
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value.Addr().Interface()); err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fault.New(fault.Invalid, "the body is larger than %d bytes", tooLarge.Limit)
		}
		return fault.New(fault.Invalid, "the body is not the JSON object that is expected: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "something follows the JSON object in the body")
	}
	for field, into := range value.Fields() { // a body cannot overrule the path; an embedded part is all body
		if _, ok := field.Tag.Lookup("json"); !ok && !field.Anonymous {
			into.Set(before.FieldByIndex(field.Index))
		}
	}
	return nil
}

// locate is the inverse of Bind's first half: the URL of op for request.
func locate(op Operation, request any) (string, error) {
	path, query := Prefix+op.Path, url.Values{}
	for field, from := range reflect.ValueOf(request).Fields() {
		if name, ok := field.Tag.Lookup("path"); ok {
			if from.String() == "" {
				return "", fault.New(fault.Invalid, "%s: the %s is empty", op.Name, name)
			}
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(from.String()), 1)
		}
		if name, ok := field.Tag.Lookup("query"); ok && !from.IsZero() {
			query.Set(name, fmt.Sprint(from.Interface()))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

// hasBody says whether a request type has fields that travel in the body; a type of no request, nil, has none.
func hasBody(request reflect.Type) bool {
	if request == nil {
		return false
	}
	for field := range request.Fields() {
		if _, ok := field.Tag.Lookup("json"); ok {
			return true
		}
	}
	return false
}
