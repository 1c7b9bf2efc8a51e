// Package pki is who is who: certificate requests, signing, revocation.
package pki
