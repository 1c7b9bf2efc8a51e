// Package codemanager speaks Code Manager's HTTP API, below /code-manager/v1, over the sources of package source: for clients, pipelines and git
// servers that deploy code of Puppet Enterprise.
//
// A webhook says that somebody pushed. It is a hint to look at a source's repository: nothing of its body decides what is deployed, so one that is
// sent twice, late, or with odd names in it does no harm. Who may send it is proven in one of two ways: by the signature or token that the git server
// makes with the source's secret (the source is named by the parameter source), or by a token of a user who may deploy all code (the parameter token, or
// a header); then the repository that the body names finds the source.
//
// # Errors
//
// Always JSON, as package pejson writes it; service.go has the table of words.
//
// # Concurrency
//
// Handlers may run concurrently.
//
// # Sources
//
// Puppet Enterprise's documentation of Code Manager's API; the documentation of webhooks of GitHub, GitLab, Gitea, Bitbucket and Azure DevOps.
package codemanager
