package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// JobFilePath is where nodes get the files of their jobs: JobFilePath + SHA-256 + "/" + name.
const JobFilePath = "/job-files/v1/"

// JobFiles tells which files a node may have.
type JobFiles interface {
	// MayFetch says whether a node has a run that has not ended, or ended after the
	// given time, of a job that names the blob.
	MayFetch(ctx context.Context, node fleet.Certname, d fleet.Digest, endedAfter time.Time) (bool, error)
}

// fetchableFor is how long after its run a node may still get the run's files: it may have
// been told to stop, or ask again for what broke off.
const fetchableFor = time.Hour

// files gives nodes the files of their jobs.
type files struct {
	files    JobFiles
	blobs    cas.Store
	problems *problems
}

// JobFileRoute serves files to the nodes that a job sends them to. It answers GET and
// HEAD, also for a part of a file. The name in the path is for the node alone.
func (h *Handler) JobFileRoute() http.Handler { return h.files.route() }

func (h *files) route() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+JobFilePath+"{digest}/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if err := h.serveJobFile(w, r); err != nil {
			h.problems.problem(w, r, err)
		}
	})
	return mux
}

func (h *files) serveJobFile(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	digest, err := fleet.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return err
	}
	if err := h.mayHave(ctx, digest); err != nil {
		return err
	}
	blob, err := h.blobs.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Etag", `"`+string(digest)+`"`)
	w.Header().Set("Cache-Control", "private, no-transform")
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	http.ServeContent(pacedWriter{w, control}, r, "", time.Time{}, blob)
	return nil
}

// mayHave returns nil when who asks is a node that a job sends the file to.
func (h *files) mayHave(ctx context.Context, digest fleet.Digest) error {
	actor := fleet.ActorFrom(ctx)
	if actor.Kind != fleet.NodeActor {
		return fault.New(fault.Denied, "files of jobs are for nodes: show the node's certificate")
	}
	may, err := h.files.MayFetch(ctx, fleet.Certname(actor.Name), digest, time.Now().Add(-fetchableFor))
	if err != nil || may {
		return err
	}
	return fault.New(fault.Denied, "no job sends the file %s to %s", digest, actor.Name)
}

// pacedWriter gives each piece its time: a whole file may take long, as long as it is taken.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p pacedWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(pieceTime)) // a connection that cannot has bounds of its own
	return p.ResponseWriter.Write(b)
}
