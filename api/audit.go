package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Operations on the audit log.
var (
	AuditList = op[AuditRequest, List[AuditEntry]](Operation{
		Name: "audit.list", Method: http.MethodGet, Path: "/audit", Permission: fleet.AuditRead, Kind: Question,
		Summary: "List what was done and refused, newest first",
	})
	AuditChain = op[AuditChainRequest, AuditChainPage](Operation{
		Name: "audit.chain", Method: http.MethodGet, Path: "/audit/chain", Permission: fleet.AuditRead, Kind: Question,
		Summary: "Export the chain of what was recorded",
	})
	AuditVerify = op[AuditVerifyRequest, AuditVerification](Operation{
		Name: "audit.verify", Method: http.MethodGet, Path: "/audit/verification", Permission: fleet.AuditRead, Kind: Question,
		Summary: "Verify the whole audit log",
	})
	AuditSign = op[Nothing, AuditHead](Operation{
		Name: "audit.sign", Method: http.MethodPost, Path: "/audit/heads", Permission: fleet.AuditRead, Kind: Act,
		Summary: "Sign the audit log as it is now",
	})
)

// auditOperations is the operations of this file, in the order of the reference.
func auditOperations() []Operation {
	return listed(AuditList, AuditChain, AuditVerify, AuditSign)
}

// AuditRequest chooses entries of the audit log.
type AuditRequest struct {
	Actor     string `query:"actor"`
	Operation string `query:"operation"` // ending in *: by its beginning
	Since     string `query:"since"`     // RFC 3339
	Until     string `query:"until"`
	Outcome   string `query:"outcome"` // started, done, failed, denied, or failing: failed and denied
	After     string `query:"after"`
	Limit     int    `query:"limit"`
}

// AuditEntry is an act, or a refusal.
type AuditEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"` // of the actor: user, node, anonymous
	Actor     string    `json:"actor,omitempty"`
	TokenID   string    `json:"token_id,omitempty"`
	Operation string    `json:"operation"`
	Object    string    `json:"object,omitempty"`
	Remote    string    `json:"remote,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	Outcome   string    `json:"outcome"` // started (its end was not seen), done, failed, denied
	Detail    string    `json:"detail,omitempty"`
	Mark      string    `json:"mark,omitempty"` // break-glass: by the token in the data directory
}

// AuditChainRequest asks for lines of the audit log's chain, in order.
type AuditChainRequest struct {
	After int64  `query:"after"` // number of a line; 0: from the first
	Since string `query:"since"` // RFC 3339; without after: begin with the lines from then on
	Limit int    `query:"limit"`
}

// AuditChainPage is some lines of the chain. What each says is signed by later heads.
type AuditChainPage struct {
	Lines []AuditLine `json:"lines"`
	Heads []AuditHead `json:"heads"` // of these lines
	Next  int64       `json:"next"`  // the after of the next page; 0: this is the last one
}

// AuditLine is a line of the chain. Its text is JSON, and has the digest of the line before it.
type AuditLine struct {
	Text   string `json:"text"`
	Digest string `json:"digest"` // SHA-256 of the text
}

// AuditHead is the signature of the CA's key over a line and so over all before it. What is signed is "tutti audit head", the
// line's number, its digest and the time, a line each.
type AuditHead struct {
	Line      int64     `json:"line"`
	Digest    string    `json:"digest"`
	At        time.Time `json:"at"`
	Signer    string    `json:"signer"` // SHA-256 of the CA's certificate
	Signature []byte    `json:"signature"`
}

// AuditVerifyRequest asks whether the audit log is what was recorded.
type AuditVerifyRequest struct {
	Known string `query:"known"` // LINE:DIGEST, as somebody wrote it down: the chain must still have it
}

// AuditVerification is what was found. Lines after signed_through are of no head yet.
type AuditVerification struct {
	Whole         bool   `json:"whole"`
	Problem       string `json:"problem,omitempty"` // the first thing that is wrong
	First         int64  `json:"first"`             // line; older ones are past audit_retention
	Last          int64  `json:"last"`
	Lines         int    `json:"lines"`
	Heads         int    `json:"heads"`
	SignedThrough int64  `json:"signed_through"`
	Digest        string `json:"digest,omitempty"` // of the last line
}
