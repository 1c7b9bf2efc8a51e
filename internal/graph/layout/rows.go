package layout

import "math"

// turnCircles finds lines that close circles, by a search from those that nothing points at.
func (d *drawing) turnCircles() {
	n := len(d.boxes)
	d.back, d.tied = make([]bool, len(d.lines)), make([]bool, n)
	out, in := make([][]int, n), make([]int, n)
	for i, l := range d.lines {
		if l.From != l.To {
			out[l.From] = append(out[l.From], i)
			in[l.To]++
			d.tied[l.From], d.tied[l.To] = true, true
		}
	}
	s := turning{d: d, out: out, state: make([]int, n)}
	for _, sources := range []bool{true, false} {
		for box := range n {
			if (in[box] == 0) == sources && s.state[box] == fresh {
				s.visit(box)
			}
		}
	}
}

// States of boxes in the search for circles.
const (
	fresh = iota
	open
	done
)

type turning struct {
	d     *drawing
	out   [][]int // lines by the box where they begin
	state []int
}

// visit follows all lines of a box. Ways may be long: what is open is a list, not calls within calls.
func (s *turning) visit(box int) {
	type at struct{ box, next int }
	stack := []at{{box: box}}
	s.state[box] = open
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(s.out[top.box]) {
			s.state[top.box] = done
			stack = stack[:len(stack)-1]
			continue
		}
		line := s.out[top.box][top.next]
		top.next++
		switch to := s.d.lines[line].To; s.state[to] {
		case fresh:
			s.state[to] = open
			stack = append(stack, at{box: to})
		case open:
			s.d.back[line] = true
		}
	}
}

// chooseRows gives each box that has lines the first row below those that point at it which has room, and the others rows under these.
func (d *drawing) chooseRows() {
	n := len(d.boxes)
	d.rowOf = make([]int, n)
	out, waits := make([][]int, n), make([]int, n)
	tied := 0
	for i, l := range d.lines {
		if l.From == l.To {
			continue
		}
		upper, lower := d.ends(i)
		out[upper] = append(out[upper], lower)
		waits[lower]++
	}
	var now []int
	for box := range n {
		if d.tied[box] {
			tied++
		}
		if d.tied[box] && waits[box] == 0 {
			now = append(now, box)
		}
	}
	most, held := room(tied), []int(nil)
	for len(now) > 0 {
		box := now[0]
		now = now[1:]
		row := d.rowOf[box]
		for row < len(held) && held[row] >= most {
			row++
		}
		for len(held) <= row {
			held = append(held, 0)
		}
		held[row]++
		d.rowOf[box] = row
		for _, lower := range out[box] {
			d.rowOf[lower] = max(d.rowOf[lower], row+1)
			if waits[lower]--; waits[lower] == 0 {
				now = append(now, lower)
			}
		}
	}
	alone, first := 0, len(held)
	wide := room(n - tied)
	for box := range n {
		if !d.tied[box] {
			d.rowOf[box] = first + alone/wide
			alone++
		}
	}
}

// room is how many boxes a row may have, for a picture that is about as wide as a screen is.
func room(boxes int) int {
	return max(6, int(math.Ceil(math.Sqrt(0.7*float64(boxes)))))
}

// threadLines gives each line a spot in every row that it passes, and fills the rows.
func (d *drawing) threadLines() {
	n := len(d.boxes)
	d.up, d.down, d.ways = make([][]int, n), make([][]int, n), make([][]int, len(d.lines))
	for i, l := range d.lines {
		if l.From == l.To {
			continue
		}
		upper, lower := d.ends(i)
		way := []int{upper}
		for row := d.rowOf[upper] + 1; row < d.rowOf[lower]; row++ {
			way = append(way, len(d.rowOf))
			d.rowOf = append(d.rowOf, row)
			d.up, d.down = append(d.up, nil), append(d.down, nil)
		}
		way = append(way, lower)
		for k := 1; k < len(way); k++ {
			d.down[way[k-1]] = append(d.down[way[k-1]], way[k])
			d.up[way[k]] = append(d.up[way[k]], way[k-1])
		}
		d.ways[i] = way
	}
	for spot, row := range d.rowOf {
		for len(d.rows) <= row {
			d.rows = append(d.rows, nil)
		}
		d.rows[row] = append(d.rows[row], spot)
	}
}
