// Package rest serves Tutti's own HTTP API (package api) under /api/v1.
//
// Each area of the API is a small type with the ports that it needs; its bindings
// say which function answers which operation. Every operation of api.Operations
// has one; New refuses to start with one missing.
//
// For each request, in this order: the actor is known (a bearer token, else the
// client certificate), the permission is checked, the request is bound and
// validated, the handler runs, and the answer or the Problem is written. Nothing
// is read from the body before the permission.
//
// Handlers may run concurrently. Errors of any kind become api.Problem; an
// Internal one is logged and shown as a reference only.
package rest
