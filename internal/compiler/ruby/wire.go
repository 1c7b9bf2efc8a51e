package ruby

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tutti-project/tutti/internal/compile"
)

// protocolVersion is what both ends must speak (PROTOCOL.md).
const protocolVersion = 1

// The longest lines that Ruby may send.
const (
	maxHeader   = 16 << 20
	maxQuestion = 2 << 20 // a query may have half of it, which escapes could double
)

// request is every message to Ruby; Op says which fields count.
type request struct {
	V           int          `json:"v"`
	Op          string       `json:"op"`
	Environment string       `json:"environment,omitempty"`
	Version     string       `json:"version,omitempty"`
	Root        string       `json:"root,omitempty"`
	Dir         string       `json:"dir,omitempty"`
	Limits      *limits      `json:"limits,omitempty"`
	Settings    *Settings    `json:"settings,omitempty"`
	Orders      []*wireOrder `json:"orders,omitempty"`
	Order       *wireOrder   `json:"order,omitempty"`
	Lookup      *wireLookup  `json:"lookup,omitempty"`
	PID         int          `json:"pid,omitempty"`
}

// limits go to Ruby with the greeting.
type limits struct {
	RequestBytes    int64 `json:"request_bytes"`
	CatalogBytes    int64 `json:"catalog_bytes"`
	MemoryBytes     int64 `json:"memory_bytes"`
	GCHeadroomBytes int64 `json:"gc_headroom_bytes"`
	AnswerBytes     int64 `json:"answer_bytes"`
}

// wireOrder is a compile.Order as Ruby reads it.
type wireOrder struct {
	Node        string          `json:"node"`
	Facts       json.RawMessage `json:"facts,omitempty"`
	Trusted     json.RawMessage `json:"trusted,omitempty"`
	ServerFacts json.RawMessage `json:"server_facts,omitempty"`
	Classes     json.RawMessage `json:"classes,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}

// wireLookup is a compile.Lookup as Ruby reads it.
type wireLookup struct {
	Keys    []string   `json:"keys"`
	Merge   *wireMerge `json:"merge,omitempty"`
	Default *string    `json:"default,omitempty"`
	Explain bool       `json:"explain,omitempty"`
	Compile bool       `json:"compile,omitempty"`
}

// wireMerge is a compile.Merge as lookup() takes it, in the order in which `puppet lookup` gives it: explanations show it.
type wireMerge struct {
	Strategy         string `json:"strategy"`
	SortMergedArrays *bool  `json:"sort_merged_arrays,omitempty"`
	MergeHashArrays  *bool  `json:"merge_hash_arrays,omitempty"`
	KnockoutPrefix   string `json:"knockout_prefix,omitempty"`
}

// message is what all lines from Ruby have: the version, and the fields of a
// question, which may come before an answer.
type message struct {
	V      int             `json:"v"`
	Ask    string          `json:"ask"` // collect, query; empty: this is the answer
	Node   string          `json:"node"`
	Type   string          `json:"type"`
	Filter json.RawMessage `json:"filter"`
	Query  string          `json:"query"`
}

func (m *message) common() *message { return m }

// controlReply is what a zygote answers.
type controlReply struct {
	message
	Error         string `json:"error"`
	Puppet        string `json:"puppet"`
	Ruby          string `json:"ruby"`
	ResidentBytes int64  `json:"resident_bytes"`
	Warmed        int    `json:"warmed"`
	Failed        int    `json:"failed"`
	Ready         bool   `json:"ready"`
	PID           int    `json:"pid"`
	Exit          *int   `json:"exit"`
	Signal        *int   `json:"signal"`
}

// workerReply is the header of a worker's answer; the documents follow it.
type workerReply struct {
	message
	Error         *compile.Error `json:"error"`
	CatalogBytes  int64          `json:"catalog_bytes"`
	ExportedBytes int64          `json:"exported_bytes"`
	Logs          []compile.Log  `json:"logs"`
	Inputs        *wireInputs    `json:"inputs"`
	CPUNanos      int64          `json:"cpu_ns"`
	PeakBytes     int64          `json:"peak_bytes"`
	ResidentBytes int64          `json:"resident_bytes"`
	NewTypes      int            `json:"new_types"`
	Spent         bool           `json:"spent"`

	// Of a lookup.
	Found            bool   `json:"found"`
	Hidden           bool   `json:"hidden"`
	Problem          string `json:"problem"`
	ValueBytes       int64  `json:"value_bytes"`
	ExplanationBytes int64  `json:"explanation_bytes"`
}

var errTooLong = errors.New("the line is too long")

// readLine reads one line of at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, errTooLong
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// fromRuby is a kind of line that Ruby sends.
type fromRuby[T any] interface {
	*T
	common() *message
}

// readReply reads a line, which may be a question, and checks its version.
func readReply[T any, P fromRuby[T]](r *bufio.Reader) (*T, error) {
	line, err := readLine(r, maxHeader)
	if err != nil {
		return nil, err
	}
	reply := new(T)
	if err := json.Unmarshal(line, reply); err != nil {
		return nil, fmt.Errorf("read an answer from ruby: %w", err)
	}
	common := P(reply).common()
	if common.V != protocolVersion {
		return nil, fmt.Errorf("ruby speaks protocol version %d, not %d", common.V, protocolVersion)
	}
	if common.Ask != "" && len(line) > maxQuestion {
		return nil, errTooLong
	}
	return reply, nil
}

// hear reads lines until one is an answer, and has the questions before it
// answered.
func hear[T any, P fromRuby[T]](r *bufio.Reader, answer func(*message) error) (*T, error) {
	for {
		reply, err := readReply[T, P](r)
		if err != nil {
			return nil, err
		}
		asked := P(reply).common()
		if asked.Ask == "" {
			return reply, nil
		}
		if err := answer(asked); err != nil {
			return nil, err
		}
	}
}

// readDocument reads a document of the announced size.
func readDocument(r *bufio.Reader, size, limit int64) (json.RawMessage, error) {
	if size < 0 || size > limit {
		return nil, fmt.Errorf("ruby announces a document of %d bytes, at most %d are allowed", size, limit)
	}
	document := make([]byte, size)
	if _, err := io.ReadFull(r, document); err != nil {
		return nil, err
	}
	return document, nil
}
