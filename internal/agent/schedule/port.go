package schedule

import "context"

// Runner does runs. A run that began goes on whatever becomes of this process.
//
// It is called by one goroutine. Errors: NotFound from Await for a run that never began, and never will.
// Any other error is that of ctx.
type Runner interface {
	// Begin begins a run under a name that nobody had before, or puts it behind one that goes on; an
	// error says that it will not be done.
	Begin(ctx context.Context, run string) error
	// Await waits for a run that began, also in an earlier process, and says what came of it.
	Await(ctx context.Context, run string) (Outcome, error)
}

// Catalogs brings what the runs apply. What goes wrong is its own business: a run applies what there is.
type Catalogs interface {
	// Refresh asks for the newest catalog. It takes its time, but not for ever.
	Refresh(ctx context.Context)
}

// Store keeps the State over restarts. It is called by one caller at a time. What was saved is there
// after a crash. Load gives the zero State when nothing was saved, and Invalid for what cannot be read.
type Store interface {
	Load() (State, error)
	Save(State) error
}
