package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Description is the operation that describes all of them.
var Description = op[Nothing, json.RawMessage](Operation{
	Name: "api.describe", Method: http.MethodGet, Path: "/openapi.json", Permission: fleet.Self, Kind: Question,
	Summary: "Describe the operations as an OpenAPI 3.1 document",
})

// descriptionOperations is the operations of this file.
func descriptionOperations() []Operation { return listed(Description) }

// object is a JSON object; its members are written in the order of their names.
type object = map[string]any

// OpenAPI describes every operation as an OpenAPI 3.1 document. Where JSON Schema cannot say it, members that begin
// with x-tutti do: the permission, whether it is an act, and what a stream's events are.
func OpenAPI() ([]byte, error) {
	b := schemas{made: object{}, types: map[string]reflect.Type{}, asked: map[reflect.Type]bool{}}
	operations := Operations()
	for _, op := range operations {
		b.ask(op.Request)
	}
	paths := map[string]object{}
	for _, op := range operations {
		path := Prefix + op.Path
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(op.Method)] = b.operation(op)
	}
	problem := b.of(reflect.TypeFor[Problem]())
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Tutti", "version": strings.TrimPrefix(Prefix, "/api/"),
			"description": "Times are RFC 3339 in UTC, sizes are bytes, durations are seconds. Lists come in pages: ask for the one after with after=next.",
		},
		"paths":    paths,
		"security": []object{{"token": []string{}}, {"certificate": []string{}}},
		"components": object{
			"schemas": b.made,
			"responses": object{"Problem": object{
				"description": "An error: its kind, and what to do.", "content": object{jsonType: object{"schema": problem}},
			}},
			"securitySchemes": object{
				"token":       object{"type": "http", "scheme": "bearer"},
				"certificate": object{"type": "mutualTLS", "description": "a certificate of the server's CA, with roles"},
			},
		},
	}, "", "  ")
}

// operation describes one operation.
func (s *schemas) operation(op Operation) object {
	area, _, _ := strings.Cut(op.Name, ".")
	described := object{
		"operationId": op.Name, "summary": op.Summary, "tags": []string{area}, "x-tutti-permission": op.Permission, "x-tutti-kind": op.Kind,
		"responses": object{"default": object{"$ref": "#/components/responses/Problem"}},
	}
	status, answer := "200", object{"description": "Done."}
	switch {
	case op.Response == nil:
		status = "204"
	case op.Streams:
		answer["content"] = object{"text/event-stream": object{"schema": object{"type": "string"}}}
		described["x-tutti-event"] = s.of(op.Response)
	default:
		answer["content"] = object{jsonType: object{"schema": s.of(op.Response)}}
	}
	described["responses"].(object)[status] = answer
	if op.Permission == fleet.Open {
		described["security"] = []object{}
	}
	if parameters := s.parameters(op.Request); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	switch {
	case op.Uploads():
		described["requestBody"] = object{"required": true, "content": object{op.Media: object{}}}
	case hasBody(op.Request):
		described["requestBody"] = object{"required": true, "content": object{jsonType: object{"schema": s.of(op.Request)}}}
	}
	return described
}

// parameters is the fields of a request that are in its path and its query.
func (s *schemas) parameters(request reflect.Type) (parameters []object) {
	if request == nil {
		return nil
	}
	for field := range request.Fields() {
		for _, place := range []string{"path", "query"} {
			if name, ok := field.Tag.Lookup(place); ok {
				parameters = append(parameters, object{"name": name, "in": place, "required": place == "path", "schema": s.of(field.Type)})
			}
		}
	}
	return parameters
}

// schemas collects the schema of each type that an operation has.
type schemas struct {
	made  object
	types map[string]reflect.Type // that have a name
	asked map[reflect.Type]bool   // types that are in requests, which may leave fields out
}

// ask notes that a type, and those in it, are in requests.
func (s *schemas) ask(t reflect.Type) {
	if t == nil || s.asked[t] {
		return
	}
	switch t.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer, reflect.Slice, reflect.Map:
		s.ask(t.Elem())
	case reflect.Struct:
		s.asked[t] = true
		for field := range t.Fields() {
			s.ask(field.Type)
		}
	}
}

// of is the schema of a type. That of a struct is put among the components.
func (s *schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() { //nolint:exhaustive // types of the API are of these kinds
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.component(t)
	}
	panic("no schema is known of " + t.String())
}

// component is a reference to the schema of a struct.
func (s *schemas) component(t reflect.Type) object {
	name := schemaName(t)
	if named := s.types[name]; named != nil && named != t {
		panic("two types have the name " + name)
	}
	if s.types[name] == nil {
		s.types[name] = t
		properties, required := object{}, []string{}
		schema := object{"type": "object", "properties": properties}
		s.made[name] = schema // before its fields: some types have themselves in them
		s.fields(t, properties, &required)
		if len(required) > 0 && !s.asked[t] {
			schema["required"] = required
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// schemaName is a type's name; a list is named after what is in it.
func schemaName(t reflect.Type) string {
	if generic, _, ok := strings.Cut(t.Name(), "["); ok {
		item := t.Field(0).Type.Elem().Name()
		return strings.ToUpper(item[:1]) + item[1:] + generic
	}
	return t.Name()
}

// fields describes the fields that a body has, those of embedded types, too. What has no value may be null, unless it is left out.
func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for field := range t.Fields() {
		tag, ok := field.Tag.Lookup("json")
		if !ok {
			if field.Anonymous {
				s.fields(field.Type, properties, required)
			}
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		schema := s.of(field.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
			switch field.Type.Kind() { //nolint:exhaustive // the others have a value
			case reflect.Pointer, reflect.Map, reflect.Slice:
				if len(schema) > 0 {
					schema = object{"anyOf": []object{schema, {"type": "null"}}}
				}
			}
		}
		properties[name] = schema
	}
}
