package compile

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Order is everything a compiler needs to compile one catalog. The same order
// gives the same catalog, unless the code asks the world outside.
type Order struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	Facts       json.RawMessage // one JSON object: name to value
	Trusted     json.RawMessage // one JSON object: $trusted
	ServerFacts json.RawMessage // one JSON object: $server_facts
	Classes     json.RawMessage // classification: object of class to parameters, or null
	Parameters  json.RawMessage // classification: top-scope variables, or null
	Data        json.RawMessage // classification: object of class::parameter to value, looked up before the layers of Hiera, or null
	Transaction string          // the run's transaction_uuid; empty when nobody waits
	// Reach is which nodes the inventory may tell the code of: a condition as pql.NodeCondition has them; empty: all. What
	// code of one reach left behind in a process is not shown to code of another one.
	Reach string `json:",omitempty"`
	// Given says where the classification is from, for errors: no part of what decides about the catalog.
	Given []Given `json:"-"`
}

// Outcome is what a compilation gave.
type Outcome struct {
	// Catalog is the document that a stock agent is given, without inlined file
	// metadata: Puppet's wire format (catalog_format 2, rich data). For equal
	// inputs it is equal apart from version, code_id and catalog_uuid: above all
	// a resource's file must not tell where the version lies on this machine.
	Catalog json.RawMessage
	// Exported holds the exported resources in the same form as the catalog's.
	Exported  json.RawMessage
	Collected []Collected // what the catalog holds of other nodes; no two are equal
	Asked     []Question  // what the code asked of the inventory, in order, each once
	// Answers holds the answers to Asked by their digests, as far as MaxRecordedBytes has room; also beside an *Error.
	Answers map[fleet.Digest]json.RawMessage
	Reads   *Reads // what it read; nil: the compiler does not tell
	Engine  string // what made it, as Compiler.Engine names it
	Logs    []Log
	Cost    Cost
}

// Log is one message that the compiler wrote.
type Log struct {
	Level   string `json:"level"` // Puppet's: debug info notice warning err alert emerg crit
	Message string `json:"message"`
	File    string `json:"file,omitempty"` // relative to the environment's root
	Line    int    `json:"line,omitempty"`
}

// Cost is what a compilation took.
type Cost struct {
	Wall      time.Duration
	CPU       time.Duration // user and system time of the worker
	PeakBytes int64         // the worker's largest resident size
}

// Cause says why a compilation gave no catalog.
type Cause string

// The causes.
const (
	CauseCode    Cause = "code"    // the code is wrong: file, line and message say where
	CauseTimeout Cause = "timeout" // it took longer than allowed
	CauseMemory  Cause = "memory"  // it wanted more memory than allowed
	CauseCrash   Cause = "crash"   // the worker died
	CauseInput   Cause = "input"   // the order itself could not be used
)

// Error is a compilation that gave no catalog. It is not a failure of Tutti: it
// is stored, and shown to whoever asked.
type Error struct {
	Cause   Cause  `json:"cause"`
	Message string `json:"message"`        // as Puppet words it, with its "(file: …, line: …)"
	From    string `json:"from,omitempty"` // which groups gave what it complains of, for people: see Order.Blamed
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Pos     int    `json:"pos,omitempty"`
	Logs    []Log  `json:"logs,omitempty"` // what the compiler wrote before
}

func (e *Error) Error() string { return e.Message }

// Compiler turns orders into catalogs. Compile may be called concurrently; it
// waits while all workers are busy. It returns *Error when the order has no
// catalog, and another error when it could not try (then trying again is right).
// Cancelling ctx kills the worker.
type Compiler interface {
	Compile(ctx context.Context, order Order) (Outcome, error)
	// Warm makes the compiler ready for a version ahead of orders, with sample
	// orders to learn from; it returns when the version is warm. A sample that
	// does not compile is no error.
	Warm(ctx context.Context, env fleet.Environment, version fleet.Digest, samples []Order) error
	// Engine names what compiles a version and all that it is made of: catalogs of another engine are
	// not used again. Empty: not known yet.
	Engine(ctx context.Context, env fleet.Environment, version fleet.Digest) string
}
