// Package api is Tutti's HTTP API: its operations, their request and response
// types, and the Go client.
//
// Each operation is an Op in the file of its area: its types, its route, its permission,
// and the client's call. Operations lists them all. Routes, permission checks, the
// reference in docs/reference/api.md and the OpenAPI document come from it.
//
// A request type's fields carry the tag `path`, `query` or `json`, which says
// where the field travels. Times are RFC 3339 in UTC, sizes are bytes, durations
// are seconds. Lists come in pages: Items, and Next for the page after.
//
// Errors: every error answer has the body Problem and the HTTP status of its
// kind (fault.Kind); the client turns it back into a fault of that kind. Only a
// query's answer is sent while it is found: an error that comes after its beginning
// is its last member, and the connection is broken off.
package api
