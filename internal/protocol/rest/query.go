package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// questions answers what the inventory is asked.
type questions struct {
	inventory inventory.Asker
	saved     SavedQueries
	problems  *problems
}

func (h *questions) bindings() []binding {
	return []binding{
		answer(api.ResourceVariants, h.compareResources),
		raw(api.QueryRun, h.runQuery),
		answer(api.QueryWords, h.queryWords),
		answer(api.QueryList, h.listSaved),
		answer(api.QueryShow, h.showSaved),
		answer(api.QuerySave, h.saveQuery),
		answer(api.QueryRemove, h.removeSaved),
	}
}

// runQuery writes api.QueryAnswer while its rows are found.
func (h *questions) runQuery(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.QueryRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	if err := begin(request); err != nil {
		return nil, err
	}
	q, err := pql.Read(request.Query)
	if err != nil {
		return nil, err
	}
	checked, err := pql.Check(q)
	if err != nil {
		return nil, err
	}
	if request.Most < 0 {
		return nil, fault.New(fault.Invalid, "field most: %d is no number of rows; 0 is all", request.Most)
	}
	rows := rowWriter{w: w, control: http.NewResponseController(w), columns: q.Names(), most: request.Most}
	question := inventory.Question{Query: checked}
	if request.Total {
		question.Counted = func(total int64) { rows.total = &total }
	}
	if err := h.inventory.Ask(r.Context(), question, rows.add); err != nil && !errors.Is(err, errEnough) {
		if !rows.begun {
			return nil, err
		}
		if !rows.gone {
			rows.abandon(h.problems.told(r, err))
		}
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	rows.close()
	return streamed{}, nil
}

// rowWriter writes an api.QueryAnswer row by row. Nothing is sent before a buffer is
// full, so that an error that comes early has a status of its own.
type rowWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	columns []string
	total   *int64
	buffer  bytes.Buffer
	count   int
	most    int  // rows that are wanted; 0: all
	more    bool // there are others
	begun   bool
	gone    bool // the caller does not take any more
}

const rowBuffer = 64 << 10

// errEnough ends a question whose other rows nobody wants.
var errEnough = errors.New("there are more rows than are wanted")

func (s *rowWriter) add(row json.RawMessage) error {
	if s.most > 0 && s.count == s.most {
		s.more = true
		return errEnough
	}
	if s.count == 0 {
		s.head()
	} else {
		s.buffer.WriteByte(',')
	}
	s.count++
	s.buffer.Write(row)
	if s.buffer.Len() < rowBuffer {
		return nil
	}
	return s.flush()
}

func (s *rowWriter) head() {
	text, _ := json.Marshal(api.QueryAnswer{Columns: s.columns, Total: s.total, Rows: []json.RawMessage{}}) // strings and a number
	s.buffer.Write(bytes.TrimSuffix(text, []byte("]}")))
}

// flush sends what there is; a caller who does not take it holds nobody up for long.
func (s *rowWriter) flush() error {
	if !s.begun {
		s.w.Header().Set("Content-Type", "application/json")
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(pieceTime)) // a connection that cannot has bounds of its own
	_, err := s.buffer.WriteTo(s.w)
	s.gone = s.gone || err != nil
	return err
}

func (s *rowWriter) close() {
	if s.count == 0 {
		s.head()
	}
	s.buffer.WriteByte(']')
	if s.more {
		s.buffer.WriteString(`,"more":true`)
	}
	s.buffer.WriteString("}\n")
	_ = s.flush() // the caller is gone if this fails
	_ = s.control.SetWriteDeadline(time.Time{})
}

// abandon says why the rows end here.
func (s *rowWriter) abandon(why api.Problem) {
	text, _ := json.Marshal(why)
	s.buffer.WriteString(`],"` + api.Ended + `":` + string(text) + "}\n")
	_ = s.flush()
	_ = s.control.Flush()
}
