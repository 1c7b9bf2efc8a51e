package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/rbac"
)

type auditVerifyInput struct{ known string }

var auditVerify = verb[auditVerifyInput]{
	use: "verify [FILE]", short: "Check that the audit log is what was recorded", args: atMostOne,
	long: `Check the whole audit log: that every entry is in the chain as it was recorded, that no line is missing, and that the heads which the CA signed
are of these lines. With a FILE, check an export instead; that asks no server, and needs the CA's certificate only (--ca-file). The first thing that is
wrong is named, and the exit code is 4.

Lines after the last head can still be cut off or written anew by whoever may write to the database. Write down LINE:DIGEST elsewhere: --known says
whether the log still has that line.`,
	example: "  tutti audit verify\n  tutti audit verify audit.jsonl --ca-file ca.pem\n  tutti audit verify --known 812:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	flags: func(f flagSet, in *auditVerifyInput) {
		f.StringVar(&in.known, "known", "", "LINE:DIGEST that the chain must have")
	},
	run: func(ctx context.Context, c *call, in *auditVerifyInput) error {
		var found api.AuditVerification
		if len(c.args) == 1 {
			if in.known != "" {
				return usageError{errors.New("--known is for the log of the server, not for a file")}
			}
			var err error
			if found, err = verifyExport(c.app, c.args[0]); err != nil {
				return err
			}
		} else {
			client, err := c.client()
			if err != nil {
				return err
			}
			if found, err = api.AuditVerify.Call(ctx, client, api.AuditVerifyRequest{Known: in.known}); err != nil {
				return err
			}
		}
		if err := print.One(c.printer(), found, printVerification); err != nil {
			return err
		}
		if !found.Whole {
			return jobOutcome{code: exitSomeFailed, text: "the audit log is not what was recorded: " + found.Problem}
		}
		return nil
	},
}

func printVerification(to print.Printer, found api.AuditVerification) error {
	if found.Whole {
		to.Line(fmt.Sprintf("The audit log is whole: %s, %d to %d, and %s; signed through line %d.", fault.Count(found.Lines, "line"), found.First,
			found.Last, fault.Count(found.Heads, "head"), found.SignedThrough))
		if found.Lines > 0 {
			to.Hint("to know this state again: --known %d:%s", found.Last, found.Digest)
		}
	}
	return nil
}

// exportLine is one line of an exported file: the first has its version, each other one of the rest.
type exportLine struct {
	Version int             `json:"tutti_audit,omitempty"`
	Part    bool            `json:"part,omitempty"` // it does not begin where the log does
	Line    json.RawMessage `json:"line,omitempty"` // the digest is of these bytes
	Digest  string          `json:"digest,omitempty"`
	Head    *api.AuditHead  `json:"head,omitempty"`
	End     *int64          `json:"end,omitempty"` // the last line; nothing follows
}

type auditExportInput struct{ since string }

var auditExport = verb[auditExportInput]{
	use: "export [FILE|-]", short: "Write the audit log with its chain as JSON lines", args: atMostOne,
	prints: silent,
	long: `Write every line of the audit log's chain, oldest first, with the heads that the CA signed. A head is signed first, so that all that was recorded before
is covered. ` + "`tutti audit verify FILE`" + ` checks the file, and so can others: docs/access.md says how. A file that exists is not written over.`,
	example: "  tutti audit export audit.jsonl\n  tutti audit export --since 24h -",
	flags: func(f flagSet, in *auditExportInput) {
		f.StringVar(&in.since, "since", "", "only lines from then on: a time, or how long ago (90m, 24h)")
	},
	run: func(ctx context.Context, c *call, in *auditExportInput) (err error) {
		request := api.AuditChainRequest{Limit: pageSize}
		if request.Since, err = momentFlag("since", in.since, time.Now()); err != nil {
			return err
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		if _, err := api.AuditSign.Call(ctx, client, api.Nothing{}); err != nil {
			return err
		}
		to := c.system.Out
		if len(c.args) == 1 && c.args[0] != "-" {
			file, err := createNamed("the export", c.args[0], 0o600)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			to = file
		}
		buffered := bufio.NewWriter(to)
		err = writeExport(buffered, in.since != "", func(page *api.AuditChainPage) (err error) {
			*page, err = api.AuditChain.Call(ctx, client, request)
			request.After = page.Next
			return err
		})
		return errors.Join(err, buffered.Flush())
	},
}

// writeExport writes page after page.
func writeExport(to io.Writer, part bool, next func(*api.AuditChainPage) error) error {
	encoder := json.NewEncoder(to)
	if err := encoder.Encode(exportLine{Version: 1, Part: part}); err != nil {
		return err
	}
	var last int64
	for {
		var page api.AuditChainPage
		if err := next(&page); err != nil {
			return err
		}
		heads := page.Heads
		for _, l := range page.Lines {
			var t rbac.LineText
			if err := json.Unmarshal([]byte(l.Text), &t); err != nil {
				return err
			}
			if last > 0 && t.Seq != last+1 {
				return fault.New(fault.Conflict, "line %d comes after line %d: old lines were forgotten meanwhile, or see `tutti audit verify`; export again", t.Seq, last)
			}
			last = t.Seq
			if err := encoder.Encode(exportLine{Line: json.RawMessage(l.Text), Digest: l.Digest}); err != nil {
				return err
			}
			for ; len(heads) > 0 && heads[0].Line <= last; heads = heads[1:] {
				if err := encoder.Encode(exportLine{Head: &heads[0]}); err != nil {
					return err
				}
			}
		}
		if page.Next == 0 {
			return encoder.Encode(exportLine{End: &last})
		}
	}
}

// maxExportLine is more than a line can have: each of its texts is bounded.
const maxExportLine = 64 << 10

func verifyExport(a *app, path string) (found api.AuditVerification, err error) {
	bundle, err := a.knownCA()
	if err != nil {
		return found, err
	}
	if len(bundle) == 0 {
		return found, usageError{errors.New("whose log is it? name the CA's certificate with --ca-file (or TUTTI_CA_FILE)")}
	}
	file, err := openNamed("the export", path)
	if err != nil {
		return found, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	checked, err := checkExport(file, func(h rbac.Head) error { return pki.CheckAuditOf(bundle, h.Signer, h.Text(), h.Signature) })
	found = api.AuditVerification{
		Whole: err == nil, First: checked.First, Last: checked.Last, Lines: checked.Lines, Heads: checked.Heads,
		SignedThrough: checked.SignedThrough, Digest: checked.Digest,
	}
	if wrong, ok := errors.AsType[*rbac.BrokenChain](err); ok {
		found.Problem, err = wrong.Error(), nil
	}
	return found, err
}

// checkExport reads an exported file line by line.
func checkExport(from io.Reader, good func(rbac.Head) error) (rbac.Checked, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxExportLine)
	check, part, ended, digest, seq, n := rbac.Checker{Good: good}, false, false, "", int64(0), 0
	for lines.Scan() {
		var l exportLine
		n++
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case err != nil:
			return rbac.Checked{}, fault.Wrap(fault.Invalid, err, "row %d of the file is no row of an export: %v", n, err)
		case n == 1 && l.Version != 1:
			return rbac.Checked{}, fault.New(fault.Invalid,
				"the file is no export of an audit log that this program knows: its first row must have tutti_audit 1")
		case ended:
			return rbac.Checked{}, &rbac.BrokenChain{Seq: seq, What: "more rows come after the end of the export"}
		case n == 1:
			part = l.Part
		case l.Line != nil:
			var t rbac.LineText
			if t, err = check.Line(l.Line, l.Digest); err == nil {
				seq, digest = t.Seq, l.Digest
			}
		case l.Head != nil:
			err = check.Head(rbac.Head{Seq: l.Head.Line, Digest: l.Head.Digest, At: l.Head.At, Signer: l.Head.Signer, Signature: l.Head.Signature})
		case l.End != nil:
			if ended = true; *l.End != seq {
				err = &rbac.BrokenChain{Seq: seq + 1, What: fmt.Sprintf("it is missing: the export ends with line %d", *l.End)}
			}
		default:
			return rbac.Checked{}, fault.New(fault.Invalid, "row %d of the file is neither a line nor a head nor the end", n)
		}
		if err != nil {
			return rbac.Checked{}, err
		}
	}
	if err := lines.Err(); err != nil {
		return rbac.Checked{}, fault.Wrap(fault.Invalid, err, "cannot read row %d of the export: %v", n+1, err)
	}
	if !ended {
		return rbac.Checked{}, &rbac.BrokenChain{Seq: seq + 1, What: "the export is cut off: its last row does not say that it is the end"}
	}
	return check.End(rbac.ChainEnd{Seq: seq, Digest: digest}, part)
}
