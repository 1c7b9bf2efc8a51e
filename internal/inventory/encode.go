package inventory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"math"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fleet"
)

// AppendDocument appends the bulk of r (metrics, logs, resources with events) to
// dst as one JSON object, which ParseDocument reads. It is written by hand
// because it runs for every report that arrives.
func AppendDocument(dst []byte, r *Report) []byte {
	dst = append(dst, `{"metrics":`...)
	dst = appendRaw(dst, r.Metrics)
	dst = append(dst, `,"logs":[`...)
	for i := range r.Logs {
		dst = appendLog(appendComma(dst, i), &r.Logs[i])
	}
	dst = append(dst, `],"resources":[`...)
	for i := range r.Resources {
		dst = appendResource(appendComma(dst, i), &r.Resources[i])
	}
	return append(dst, `]}`...)
}

// ParseDocument reads what AppendDocument wrote into r.
func ParseDocument(document []byte, r *Report) error {
	var doc struct {
		Metrics   json.RawMessage  `json:"metrics"`
		Logs      []RunLog         `json:"logs"`
		Resources []ResourceStatus `json:"resources"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return err
	}
	if string(doc.Metrics) == "null" {
		doc.Metrics = nil
	}
	r.Metrics, r.Logs, r.Resources = doc.Metrics, doc.Logs, doc.Resources
	return nil
}

// digest is the ID: everything that the node said, and nothing of ours.
func (r *Report) digest() fleet.Digest {
	d := newDigester("tutti report 2")
	d.texts(
		string(r.Certname), string(r.Environment), r.Type, r.Status, r.PuppetVersion, r.ConfigVersion,
		r.TransactionUUID, r.CatalogUUID, r.CodeID, r.JobID, r.CachedCatalog, r.Server, string(r.Metrics),
	)
	d.flags(r.Noop, r.NoopPending, r.CorrectiveChange, r.Completed)
	d.number(int64(r.ReportFormat))
	d.time(r.StartedAt)
	d.time(r.EndedAt)
	d.number(int64(len(r.Logs)))
	for i := range r.Logs {
		l := &r.Logs[i]
		d.texts(l.Level, l.Message, l.Source, l.File)
		d.list(l.Tags)
		d.number(int64(l.Line))
		d.time(l.Time)
	}
	d.number(int64(len(r.Resources)))
	for i := range r.Resources {
		d.resource(&r.Resources[i])
	}
	return d.sum()
}

// digester feeds a hash with values that cannot be mistaken for others: every text
// comes after its length.
type digester struct {
	hash hash.Hash
	buf  []byte
}

// newDigester begins with what is digested, so that no two kinds can be taken for
// each other.
func newDigester(kind string) *digester {
	d := &digester{hash: sha256.New(), buf: make([]byte, 0, 8<<10)}
	d.texts(kind)
	return d
}

func (d *digester) sum() fleet.Digest {
	d.flush()
	return fleet.Digest(hex.EncodeToString(d.hash.Sum(nil)))
}

func (d *digester) flush() {
	_, _ = d.hash.Write(d.buf) // never fails
	d.buf = d.buf[:0]
}

func (d *digester) texts(texts ...string) {
	for _, text := range texts {
		d.buf = append(binary.AppendUvarint(d.buf, uint64(len(text))), text...)
	}
	if len(d.buf) > 4<<10 {
		d.flush()
	}
}

func (d *digester) list(texts []string) {
	d.number(int64(len(texts)))
	d.texts(texts...)
}

func (d *digester) number(n int64) { d.buf = binary.AppendVarint(d.buf, n) }

func (d *digester) time(at time.Time) {
	d.number(at.Unix())
	d.number(int64(at.Nanosecond()))
}

func (d *digester) flags(flags ...bool) {
	for _, flag := range flags {
		if flag {
			d.number(1)
		} else {
			d.number(0)
		}
	}
}

func (d *digester) resource(r *ResourceStatus) {
	d.texts(r.Type, r.Title, r.File)
	d.list(r.ContainmentPath)
	d.number(int64(r.Line))
	d.buf = binary.BigEndian.AppendUint64(d.buf, math.Float64bits(r.EvaluationTime))
	d.flags(r.Skipped, r.Failed, r.FailedToRestart, r.Changed, r.OutOfSync, r.CorrectiveChange)
	d.time(r.Time)
	d.number(int64(len(r.Events)))
	for i := range r.Events {
		e := &r.Events[i]
		d.texts(e.Property, string(e.Previous), string(e.Desired), e.Message, e.Name, e.Status)
		d.time(e.Time)
		d.flags(e.CorrectiveChange, e.Redacted)
	}
}

func appendLog(dst []byte, l *RunLog) []byte {
	dst = appendText(append(dst, '{'), `"level":`, l.Level)
	dst = appendText(append(dst, ','), `"message":`, l.Message)
	dst = appendText(append(dst, ','), `"source":`, l.Source)
	dst = appendList(dst, `,"tags":`, l.Tags)
	dst = appendTime(append(dst, `,"time":`...), l.Time)
	dst = appendPlace(dst, l.File, l.Line)
	return append(dst, '}')
}

func appendResource(dst []byte, r *ResourceStatus) []byte {
	dst = appendText(append(dst, '{'), `"type":`, r.Type)
	dst = appendText(append(dst, ','), `"title":`, r.Title)
	dst = appendPlace(dst, r.File, r.Line)
	dst = appendList(dst, `,"containment_path":`, r.ContainmentPath)
	if r.EvaluationTime != 0 {
		dst = strconv.AppendFloat(append(dst, `,"evaluation_time":`...), r.EvaluationTime, 'g', -1, 64)
	}
	dst = appendFlag(dst, `,"skipped":true`, r.Skipped)
	dst = appendFlag(dst, `,"failed":true`, r.Failed)
	dst = appendFlag(dst, `,"failed_to_restart":true`, r.FailedToRestart)
	dst = appendFlag(dst, `,"changed":true`, r.Changed)
	dst = appendFlag(dst, `,"out_of_sync":true`, r.OutOfSync)
	dst = appendFlag(dst, `,"corrective_change":true`, r.CorrectiveChange)
	dst = appendTime(append(dst, `,"time":`...), r.Time)
	if len(r.Events) > 0 {
		dst = append(dst, `,"events":[`...)
		for i := range r.Events {
			dst = appendEvent(appendComma(dst, i), &r.Events[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendEvent(dst []byte, e *Event) []byte {
	dst = appendText(append(dst, '{'), `"property":`, e.Property)
	if e.Previous != nil {
		dst = appendRaw(append(dst, `,"previous_value":`...), e.Previous)
	}
	if e.Desired != nil {
		dst = appendRaw(append(dst, `,"desired_value":`...), e.Desired)
	}
	dst = appendText(append(dst, ','), `"message":`, e.Message)
	dst = appendText(append(dst, ','), `"name":`, e.Name)
	dst = appendText(append(dst, ','), `"status":`, e.Status)
	dst = appendTime(append(dst, `,"time":`...), e.Time)
	dst = appendFlag(dst, `,"corrective_change":true`, e.CorrectiveChange)
	dst = appendFlag(dst, `,"redacted":true`, e.Redacted)
	return append(dst, '}')
}

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

func appendText(dst []byte, key, text string) []byte {
	return scan.AppendQuoted(append(dst, key...), text)
}

func appendFlag(dst []byte, text string, holds bool) []byte {
	if holds {
		return append(dst, text...)
	}
	return dst
}

func appendPlace(dst []byte, file string, line int) []byte {
	if file != "" {
		dst = appendText(dst, `,"file":`, file)
	}
	if line != 0 {
		dst = strconv.AppendInt(append(dst, `,"line":`...), int64(line), 10)
	}
	return dst
}

func appendList(dst []byte, key string, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}
	dst = append(append(dst, key...), '[')
	for i, text := range texts {
		dst = scan.AppendQuoted(appendComma(dst, i), text)
	}
	return append(dst, ']')
}

func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

func appendTime(dst []byte, at time.Time) []byte {
	dst = append(dst, '"')
	dst = at.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}
