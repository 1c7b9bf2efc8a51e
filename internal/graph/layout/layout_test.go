package layout_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/graph/layout"
)

func same(n int) []layout.Box {
	boxes := make([]layout.Box, n)
	for i := range boxes {
		boxes[i] = layout.Box{Width: 200, Height: 40}
	}
	return boxes
}

func TestAChainStandsInOneColumn(t *testing.T) {
	t.Parallel()
	p := layout.Draw(same(3), []layout.Line{{0, 1}, {1, 2}})
	want := layout.Picture{
		Width: 200, Height: 216, Boxes: []layout.Point{{0, 0}, {0, 88}, {0, 176}}, Rows: []int{0, 1, 2},
		Paths: []layout.Path{
			{Points: []layout.Point{{100, 40}, {100, 88}}},
			{Points: []layout.Point{{100, 128}, {100, 176}}},
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParentsStandOverTheMiddle(t *testing.T) {
	t.Parallel()
	p := layout.Draw(same(4), []layout.Line{{0, 1}, {0, 2}, {0, 3}})
	if p.Boxes[0].X != p.Boxes[2].X || p.Boxes[1].X >= p.Boxes[2].X || p.Boxes[2].X >= p.Boxes[3].X {
		t.Errorf("%+v", p.Boxes)
	}
}

// Two pairs whose lines would cross in the order of the input do not cross in the picture.
func TestCrossingsAreTakenOut(t *testing.T) {
	t.Parallel()
	p := layout.Draw(same(4), []layout.Line{{0, 3}, {1, 2}})
	if (p.Boxes[0].X < p.Boxes[1].X) != (p.Boxes[3].X < p.Boxes[2].X) {
		t.Errorf("%+v", p.Boxes)
	}
}

func TestACircleHasOneLineUp(t *testing.T) {
	t.Parallel()
	p := layout.Draw(same(3), []layout.Line{{0, 1}, {1, 2}, {2, 0}, {1, 1}})
	if p.Paths[0].Back || p.Paths[1].Back || !p.Paths[2].Back {
		t.Errorf("%+v", p.Paths)
	}
	up := p.Paths[2].Points
	if first, last := up[0], up[len(up)-1]; first.Y <= last.Y || len(p.Paths[3].Points) != 0 {
		t.Errorf("the line back is %v, that to itself %v", up, p.Paths[3])
	}
}

func TestNothingIsAPicture(t *testing.T) {
	t.Parallel()
	if p := layout.Draw(nil, nil); p.Width != 0 || p.Height != 0 {
		t.Errorf("%+v", p)
	}
}

type drawn struct {
	boxes []layout.Box
	lines []layout.Line
}

func draw(t *rapid.T) drawn {
	n := rapid.IntRange(1, 60).Draw(t, "boxes")
	d := drawn{boxes: make([]layout.Box, n)}
	for i := range d.boxes {
		d.boxes[i] = layout.Box{Width: rapid.IntRange(1, 300).Draw(t, "width"), Height: rapid.IntRange(1, 90).Draw(t, "height")}
	}
	box := rapid.IntRange(0, n-1)
	d.lines = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layout.Line {
		return layout.Line{From: box.Draw(t, "from"), To: box.Draw(t, "to")}
	}), 0, 120).Draw(t, "lines")
	return d
}

func TestAnyPictureKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := draw(rt)
		p := layout.Draw(slices.Clone(d.boxes), slices.Clone(d.lines))
		d.checkBoxes(rt, p)
		d.checkLines(rt, p)
		d.checkCircles(rt, p)
		if again := layout.Draw(d.boxes, d.lines); !reflect.DeepEqual(p, again) {
			rt.Fatalf("another picture of the same: %s", cmp.Diff(p, again))
		}
	})
}

// checkBoxes: all are in the picture, and no two overlap.
func (d drawn) checkBoxes(rt *rapid.T, p layout.Picture) {
	for i, a := range p.Boxes {
		if a.X < 0 || a.Y < 0 || a.X+d.boxes[i].Width > p.Width || a.Y+d.boxes[i].Height > p.Height {
			rt.Fatalf("box %d at %v is not within %d x %d", i, a, p.Width, p.Height)
		}
		for j := range i {
			b := p.Boxes[j]
			if a.X < b.X+d.boxes[j].Width && b.X < a.X+d.boxes[i].Width && a.Y < b.Y+d.boxes[j].Height && b.Y < a.Y+d.boxes[i].Height {
				rt.Fatalf("boxes %d at %v and %d at %v overlap", i, a, j, b)
			}
		}
	}
}

// checkLines: a line goes down from one end to the other, back ones up, and touches no box but these.
func (d drawn) checkLines(rt *rapid.T, p layout.Picture) {
	for i, l := range d.lines {
		path := p.Paths[i]
		if l.From == l.To {
			if len(path.Points) > 0 {
				rt.Fatalf("line %d is drawn from a box to itself: %v", i, path)
			}
			continue
		}
		upper, lower, points := l.From, l.To, slices.Clone(path.Points)
		if path.Back {
			upper, lower = l.To, l.From
			slices.Reverse(points)
		}
		first, last := points[0], points[len(points)-1]
		if p.Rows[upper] >= p.Rows[lower] || first.Y != p.Boxes[upper].Y+d.boxes[upper].Height || last.Y != p.Boxes[lower].Y {
			rt.Fatalf("line %d from %d to %d, back %v, runs %v between %v and %v", i, l.From, l.To, path.Back, points, p.Boxes[upper], p.Boxes[lower])
		}
		for _, end := range []struct {
			at  layout.Point
			box int
		}{{first, upper}, {last, lower}} {
			if left := p.Boxes[end.box].X; end.at.X < left || end.at.X > left+d.boxes[end.box].Width {
				rt.Fatalf("line %d ends at %v, beside box %d at %v", i, end.at, end.box, p.Boxes[end.box])
			}
		}
		for k := 1; k < len(points); k++ {
			if points[k].Y <= points[k-1].Y {
				rt.Fatalf("line %d does not go down: %v", i, points)
			}
			d.checkClear(rt, p, points[k-1], points[k])
		}
	}
}

// checkClear: a piece of a line has no box in its way. Pieces that are not straight down lie between rows.
func (d drawn) checkClear(rt *rapid.T, p layout.Picture, from, to layout.Point) {
	for i, at := range p.Boxes {
		if from.Y < at.Y+d.boxes[i].Height && at.Y < to.Y && min(from.X, to.X) < at.X+d.boxes[i].Width && at.X < max(from.X, to.X) {
			rt.Fatalf("the piece %v to %v touches box %d at %v", from, to, i, at)
		}
	}
}

// checkCircles: a picture without circles has no line up, and each line that is turned is in one.
func (d drawn) checkCircles(rt *rapid.T, p layout.Picture) {
	for i, l := range d.lines {
		if p.Paths[i].Back && !d.reaches(l.To, l.From) {
			rt.Fatalf("line %d from %d to %d points up, and is in no circle", i, l.From, l.To)
		}
	}
}

func (d drawn) reaches(from, to int) bool {
	seen := map[int]bool{from: true}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			return true
		}
		for _, l := range d.lines {
			if l.From == queue[0] && !seen[l.To] {
				seen[l.To] = true
				queue = append(queue, l.To)
			}
		}
	}
	return false
}

// The largest picture that is sent is drawn in a moment.
func TestALargePictureIsNoTrouble(t *testing.T) {
	t.Parallel()
	boxes := same(500)
	var lines []layout.Line
	for i := 1; i < len(boxes); i++ {
		lines = append(lines, layout.Line{From: 0, To: i}, layout.Line{From: i / 2, To: i}, layout.Line{From: i / 7, To: i})
	}
	begun := time.Now()
	p := layout.Draw(boxes, lines)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("%d x %d took %s", p.Width, p.Height, took)
	}
}

func BenchmarkDraw(b *testing.B) {
	boxes := same(500)
	var lines []layout.Line
	for i := 1; i < len(boxes); i++ {
		lines = append(lines, layout.Line{From: i / 2, To: i}, layout.Line{From: i / 7, To: i})
	}
	for b.Loop() {
		layout.Draw(boxes, lines)
	}
}
