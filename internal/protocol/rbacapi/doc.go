// Package rbacapi speaks versions 1 and 2 of Puppet Enterprise's RBAC service, below /rbac-api/v1 and /rbac-api/v2, over the
// users, roles and tokens of package rbac: for clients that log in, check and revoke tokens there. Each route is below both
// versions; only the list of users differs.
//
// A token is one of Tutti's: what is made here is shown by `tutti token list`, and good wherever Tutti takes one.
//
// # Ids
//
// Users are named by UUID there and roles by number, and both by their name here. The id is a function of the name (ids.go): it
// is the same on every server and after a restore, and nothing is stored for it. The built-in roles have the numbers 1 to 6.
//
// # Permissions
//
// A permission there is a type of object, an action and an instance. permissions.go is the table of what these are in Tutti's
// words. A grant that needs more than one instance to be said is shown with its bounds in words and cannot be written; a role
// that has one is edited with `tutti role edit`. What of Tutti has no word there is shown under its own: release:create:*.
//
// # Not here
//
// User groups, directories, SAML, expiry of accounts and tokens for lost passwords: there are none in Tutti. Descriptions and
// clients of tokens, and e-mail addresses and full names of users, are taken and not kept.
//
// # Errors
//
// Package pejson has the form; handler.go is the table of kinds. No answer to a login says whether the name or the password was wrong.
//
// # Concurrency
//
// Handlers may run concurrently. A role's members are changed one by one: a failure leaves those before it changed, and says so.
//
// # Sources
//
// Puppet Enterprise's documentation of the RBAC service API, and what its public clients send.
package rbacapi
