package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// The compile queue.
var (
	CompileQueue = op[Nothing, CompileQueueStatus](Operation{
		Name: "compile.queue", Method: http.MethodGet, Path: "/compile/queue", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Show how much is to be compiled, what is paused, and how fast it goes",
	})
	CompileList = op[CompileListRequest, List[Compilation]](Operation{
		Name: "compile.list", Method: http.MethodGet, Path: "/compilations", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "List compilations, the newest first",
	})
	CompileShow = op[CompileShowRequest, CompilationRecord](Operation{
		Name: "compile.show", Method: http.MethodGet, Path: "/compilations/{compilation}",
		Permission: fleet.CatalogRead, Kind: Question,
		Summary: "Show one compilation: what it read, its cost, its error and its logs",
	})
	CompileNow = op[CompileNowRequest, CompileNowAnswer](Operation{
		Name: "compile.now", Method: http.MethodPost, Path: "/compile/now", Permission: fleet.CompileRun, Kind: Act,
		Summary: "Want catalogs at the front of the queue",
	})
	CompilePause = op[CompilePauseRequest, Nothing](Operation{
		Name: "compile.pause", Method: http.MethodPost, Path: "/compile/pause", Permission: fleet.CompilePause, Kind: Act,
		Summary: "Start no more compilations, at all or for an environment, until they are resumed",
	})
	CompileResume = op[CompileResumeRequest, Nothing](Operation{
		Name: "compile.resume", Method: http.MethodPost, Path: "/compile/resume", Permission: fleet.CompilePause, Kind: Act,
		Summary: "End a pause",
	})
)

func compileOperations() []Operation {
	return listed(CompileQueue, CompileList, CompileShow, CompileNow, CompileVerify, CompileSample, CompileVerified, CompilePause, CompileResume)
}

// CompileQueueStatus is how the queue stands.
type CompileQueueStatus struct {
	Wanted  int             `json:"wanted"`
	Running int             `json:"running"`
	Resting int             `json:"resting"`          // could not be tried and wait to be tried again
	Oldest  *time.Time      `json:"oldest,omitempty"` // when the oldest wanted one was wanted
	Lanes   []CompileLane   `json:"lanes"`            // by priority and environment
	Pauses  []CompilePaused `json:"pauses"`           // that of all first
	Slowed  []CompileSlowed `json:"slowed"`           // environments whose compilations take too long again and again
	Ended   []CompileEnded  `json:"ended"`            // of the last 5 minutes and of the last hour, by environment
	Now     []Compilation   `json:"now"`              // those that run, then those that rest, at most 100
	// Troubles is why attempts could not be made, and how many compilations wait because of that: those with the most first, at most 20.
	Troubles []CompileTrouble `json:"troubles"`
}

// CompileLane is one priority of an environment.
type CompileLane struct {
	Priority    string     `json:"priority"` // waited, signed, new_facts, new_exports, new_code, previewing, background
	Environment string     `json:"environment"`
	Wanted      int        `json:"wanted"`
	Running     int        `json:"running"`
	Resting     int        `json:"resting"`
	Oldest      *time.Time `json:"oldest,omitempty"`
}

// CompileTrouble is why an attempt could not be made, of compilations that rest or wait for a worker again.
type CompileTrouble struct {
	Trouble string     `json:"trouble"`
	Waiting int        `json:"waiting"`
	Next    *time.Time `json:"next,omitempty"` // when the first of them is tried again; none: as soon as a worker is free
}

// CompilePaused says that nothing more is compiled.
type CompilePaused struct {
	Environment string    `json:"environment,omitempty"` // empty: for none at all
	By          string    `json:"by"`
	Reason      string    `json:"reason,omitempty"`
	At          time.Time `json:"at"`
}

// CompileSlowed says that an environment is compiled one at a time and with pauses, until a compilation of it ends in time, or it
// has other code.
type CompileSlowed struct {
	Environment string    `json:"environment"`
	Previews    bool      `json:"previews,omitempty"` // of its previews and checks, and not of its catalogs
	Version     string    `json:"version"`            // of the code that takes too long
	Timeouts    int       `json:"timeouts"`           // in a row
	Since       time.Time `json:"since"`
	RestsUntil  time.Time `json:"rests_until"` // when the next one may run
}

// CompileEnded is what finished lately.
type CompileEnded struct {
	Seconds     int    `json:"seconds"` // how far back it was counted
	Environment string `json:"environment"`
	Compiled    int    `json:"compiled"`
	Reused      int    `json:"reused"` // answered with a stored catalog
	Failed      int    `json:"failed"`
}

// CompileListRequest picks compilations.
type CompileListRequest struct {
	Node        string `query:"node"`
	Environment string `query:"environment"`
	State       string `query:"state"` // wanted, running (also those that rest), resting, done, failed
	IDs         string `query:"ids"`   // only these: numbers with commas between them
	After       string `query:"after"`
	Limit       int    `query:"limit"`
}

// CompileShowRequest names a compilation by its number.
type CompileShowRequest struct {
	ID string `path:"compilation"`
}

// Compilation is one row of the queue, or of what became of it.
type Compilation struct {
	ID          int64         `json:"id"`
	Node        string        `json:"node"`
	Environment string        `json:"environment"`
	Version     string        `json:"version"`
	Priority    string        `json:"priority"`
	State       string        `json:"state"`            // wanted, running, resting, done, failed
	Staged      bool          `json:"staged,omitempty"` // its catalog does not become the node's newest
	WantedAt    time.Time     `json:"wanted_at"`
	Attempts    int           `json:"attempts"`
	Worker      string        `json:"worker,omitempty"`      // where it runs
	Trouble     string        `json:"trouble,omitempty"`     // why the last attempt could not be made
	RestsUntil  *time.Time    `json:"rests_until,omitempty"` // when the next one is made
	FinishedAt  *time.Time    `json:"finished_at,omitempty"`
	Catalog     string        `json:"catalog,omitempty"` // its digest
	Reused      bool          `json:"reused,omitempty"`  // the stored catalog was used again
	Error       *CompileError `json:"error,omitempty"`
	WallMillis  int64         `json:"wall_ms"`
	CPUMillis   int64         `json:"cpu_ms"`
	PeakBytes   int64         `json:"peak_bytes"`
}

// CompileError is why there is no catalog.
type CompileError struct {
	Cause   string `json:"cause"` // code, timeout, memory, crash, input
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Pos     int    `json:"pos,omitempty"`
}

// CompilationRecord is all that is known of a compilation.
type CompilationRecord struct {
	Compilation
	FactsSeq int64          `json:"facts_seq"`        // the facts it was made of
	Checks   int64          `json:"checks,omitempty"` // it checks the catalog of this one, which was used again
	Inputs   *CompileInputs `json:"inputs,omitempty"` // where they are known
	Logs     []CompileLog   `json:"logs"`
}

// CompileInputs counts what was read; `tutti catalog inputs` lists it for a node's
// newest catalog.
type CompileInputs struct {
	Digest    string   `json:"digest"`
	Engine    string   `json:"engine"`
	Values    int      `json:"values"`    // facts, trusted data, server facts
	Sources   int      `json:"sources"`   // files and directories
	Questions int      `json:"questions"` // of the inventory
	Volatile  []string `json:"volatile,omitempty"`
}

// CompileLog is one message of the compiler.
type CompileLog struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// CompileNowRequest says whose catalogs are wanted: named nodes go with those that an
// agent waits for, nodes of an environment or condition right behind.
type CompileNowRequest struct {
	Nodes       []string `json:"nodes,omitempty"` // at most 1000
	Environment string   `json:"environment,omitempty"`
	Where       string   `json:"where,omitempty"` // condition in PQL
	After       string   `json:"after,omitempty"` // of environment and condition: the next nodes
}

// CompileNowAnswer is what was wanted.
type CompileNowAnswer struct {
	Items   []Compilation    `json:"items"`
	Refused []CompileRefused `json:"refused"` // nodes for which there is nothing to compile
	Pauses  []CompilePaused  `json:"pauses"`  // what must be resumed first
	Next    string           `json:"next,omitempty"`
}

// CompileRefused is a node for which nothing can be compiled.
type CompileRefused struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

// CompilePauseRequest says what is paused.
type CompilePauseRequest struct {
	Environment string `json:"environment,omitempty"` // empty: all
	Reason      string `json:"reason,omitempty"`      // for whoever waits
}

// CompileResumeRequest says what goes on.
type CompileResumeRequest struct {
	Environment string `json:"environment,omitempty"` // empty: the pause of all
}
