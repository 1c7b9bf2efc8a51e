package rest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

func (h *auditLog) auditChain(ctx context.Context, request api.AuditChainRequest) (api.AuditChainPage, error) {
	answer := api.AuditChainPage{Lines: []api.AuditLine{}, Heads: []api.AuditHead{}}
	page, err := pageOf("", request.Limit)
	if err != nil {
		return answer, err
	}
	if request.After < 0 {
		return answer, fault.New(fault.Invalid, "after must be the number of a line, not %d", request.After)
	}
	since, err := momentOf("since", request.Since)
	if err != nil {
		return answer, err
	}
	found, err := h.chain.Page(ctx, request.After, since, page.Limit)
	for _, l := range found.Lines {
		answer.Lines = append(answer.Lines, api.AuditLine{Text: string(l.Text(l.Entry)), Digest: l.Digest})
	}
	for _, head := range found.Heads {
		answer.Heads = append(answer.Heads, headOf(head))
	}
	if n := len(found.Lines); n == page.Limit {
		answer.Next = found.Lines[n-1].Seq
	}
	return answer, err
}

func headOf(h rbac.Head) api.AuditHead {
	return api.AuditHead{Line: h.Seq, Digest: h.Digest, At: h.At.UTC(), Signer: h.Signer, Signature: h.Signature}
}

func (h *auditLog) verifyAudit(ctx context.Context, request api.AuditVerifyRequest) (api.AuditVerification, error) {
	known, err := knownLine(request.Known)
	if err != nil {
		return api.AuditVerification{}, err
	}
	found, err := h.chain.Verify(ctx, known)
	answer := api.AuditVerification{
		Whole: err == nil, First: found.First, Last: found.Last, Lines: found.Lines, Heads: found.Heads,
		SignedThrough: found.SignedThrough, Digest: found.Digest,
	}
	if wrong, ok := errors.AsType[*rbac.BrokenChain](err); ok {
		answer.Problem = wrong.Error()
		h.log.ErrorContext(ctx, "the audit log is not what was recorded", "problem", answer.Problem)
		return answer, nil
	}
	return answer, err
}

func knownLine(text string) (known rbac.ChainEnd, err error) {
	if text == "" {
		return known, nil
	}
	line, digest, _ := strings.Cut(text, ":")
	if known.Seq, err = strconv.ParseInt(line, 10, 64); err != nil || known.Seq <= 0 || len(digest) != 64 {
		return known, fault.New(fault.Invalid, "known must be LINE:DIGEST, as `tutti audit verify` prints them, not %.80q", text)
	}
	known.Digest = strings.ToLower(digest)
	return known, nil
}

func (h *auditLog) signAudit(ctx context.Context, _ api.Nothing) (api.AuditHead, error) {
	head, err := h.chain.Sign(ctx, time.Now())
	return headOf(head), err
}
