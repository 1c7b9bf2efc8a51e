package job

import (
	"context"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Job is one job; NotFound.
func (s *Service) Job(ctx context.Context, id int64) (Job, error) { return s.Store.Job(ctx, id) }

// Jobs is a page of jobs, the newest first.
func (s *Service) Jobs(ctx context.Context, page Page) ([]Job, error) {
	return s.Store.Jobs(ctx, page)
}

// CountJobs is how many jobs a page is of.
func (s *Service) CountJobs(ctx context.Context, page Page) (int, error) {
	return s.Store.CountJobs(ctx, page)
}

// Runs is a page of a job's runs, by Number; NotFound.
func (s *Service) Runs(ctx context.Context, id int64, page RunPage) ([]Run, error) {
	runs, err := s.Store.Runs(ctx, id, page)
	if err == nil && len(runs) == 0 {
		_, err = s.Store.Job(ctx, id)
	}
	return runs, err
}

// Changes is what changed in a job.
type Changes struct {
	Job  Job   // as it is
	Runs []Run // that changed, each once, by the number of its latest change
	Own  bool  // the job's status changed, too
	Last int64 // the number up to which this is complete: ask for what is behind it next
}

// Changes is what changed in a job behind the change with a number, at most about n
// runs. It is complete up to Last; it says nothing of states in between. NotFound.
func (s *Service) Changes(ctx context.Context, id, after int64, n int) (Changes, error) {
	j, runs, err := s.Store.Changes(ctx, id, after, n)
	if err != nil {
		return Changes{}, err
	}
	c := Changes{Job: j, Runs: runs, Last: max(j.Change, after)}
	if n > 0 && len(runs) == n {
		c.Last = runs[n-1].Change
	}
	c.Own = j.OwnChange > after && j.OwnChange <= c.Last
	return c, nil
}

// Place is a line of a job's output: of the run with a number, the line with a number.
type Place struct {
	Run  int
	Line int
}

// OutputPage is which lines of a job are wanted.
type OutputPage struct {
	Node  fleet.Certname // empty: all, one after the other
	After Place
	Limit int
}

// chunksAtOnce bounds what is read at once: about 2 MiB.
const chunksAtOnce = 32

// Output is a page of a job's lines, by run and number, and where it ends; the same
// place when there are no more. NotFound.
func (s *Service) Output(ctx context.Context, id int64, page OutputPage) ([]Line, Place, error) {
	var lines []Line
	place := page.After
	for first := max(0, place.Run-1); ; { // the run that the last page ended in may have more
		runs, err := s.Runs(ctx, id, RunPage{After: first, Limit: 100, Node: page.Node})
		if err != nil || len(runs) == 0 {
			return lines, place, err
		}
		for _, r := range runs {
			if first = r.Number; r.Number > place.Run {
				place = Place{Run: r.Number}
			}
			if lines, place, err = s.linesOf(ctx, r, lines, place, page.Limit); err != nil || len(lines) >= page.Limit {
				return lines, place, err
			}
		}
	}
}

// Written is the whole of what a run wrote, apart by stream. Every line ends as lines do.
func (s *Service) Written(ctx context.Context, r Run) (map[Stream]string, error) {
	lines, _, err := s.linesOf(ctx, r, nil, Place{Run: r.Number}, r.Output.Lines)
	if err != nil {
		return nil, err
	}
	texts := map[Stream]*strings.Builder{}
	for _, line := range lines {
		if texts[line.Stream] == nil {
			texts[line.Stream] = &strings.Builder{}
		}
		texts[line.Stream].WriteString(line.Text)
		if !line.More {
			texts[line.Stream].WriteByte('\n')
		}
	}
	written := map[Stream]string{}
	for stream, text := range texts {
		written[stream] = text.String()
	}
	return written, nil
}

// linesOf adds the lines of a run behind a place, up to a limit.
func (s *Service) linesOf(ctx context.Context, r Run, lines []Line, place Place, limit int) ([]Line, Place, error) {
	for place.Line < r.Output.Lines {
		chunks, err := s.Store.Chunks(ctx, r.ID, place.Line, chunksAtOnce)
		if err != nil || len(chunks) == 0 {
			return lines, place, err
		}
		for _, c := range chunks {
			decoded, err := c.Lines(r)
			if err != nil {
				return lines, place, err
			}
			for _, line := range decoded {
				if line.Number <= place.Line {
					continue
				}
				if len(lines) >= limit {
					return lines, place, nil
				}
				lines, place.Line = append(lines, line), line.Number
			}
		}
	}
	return lines, place, nil
}
