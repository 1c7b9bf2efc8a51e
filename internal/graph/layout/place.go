package layout

import (
	"math"
	"slices"
)

// place moves the spots of each row to the middle of what they are tied to: by the rows above, by those below, and at last by both.
func (d *drawing) place() {
	d.centre = make([]float64, len(d.rowOf))
	for _, row := range d.rows {
		d.settle(row, make([]float64, len(row)))
	}
	for range sweeps / 2 {
		for _, row := range d.rows {
			d.settle(row, d.wishes(row, d.up))
		}
		for _, row := range slices.Backward(d.rows) {
			d.settle(row, d.wishes(row, d.down))
		}
	}
	for _, row := range d.rows {
		d.settle(row, d.wishes(row, d.up, d.down))
	}
	d.align()
}

// wishes is where the spots of a row want to stand: in the middle of their neighbours.
func (d *drawing) wishes(row []int, sides ...[][]int) []float64 {
	wishes := make([]float64, len(row))
	for i, spot := range row {
		sum, n := 0.0, 0
		for _, neighbours := range sides {
			for _, tie := range neighbours[spot] {
				sum += d.centre[tie]
				n++
			}
		}
		if wishes[i] = d.centre[spot]; n > 0 {
			wishes[i] = sum / float64(n)
		}
	}
	return wishes
}

// settle moves a row as near to its wishes as its order and its distances allow: the sum of squares is the smallest there is. Neighbours that
// push each other become one block, which stands at the mean of its wishes (pooling of adjacent violators).
func (d *drawing) settle(row []int, wishes []float64) {
	type block struct {
		sum  float64 // of wishes, each less its offset
		n    int
		from int
	}
	offset := make([]float64, len(row))
	for i := 1; i < len(row); i++ {
		offset[i] = offset[i-1] + d.apart(row[i-1], row[i])
	}
	var blocks []block
	for i := range row {
		blocks = append(blocks, block{sum: wishes[i] - offset[i], n: 1, from: i})
		for last := len(blocks) - 1; last > 0; last-- {
			a, b := blocks[last-1], blocks[last]
			if a.sum/float64(a.n) < b.sum/float64(b.n) {
				break
			}
			blocks = append(blocks[:last-1], block{sum: a.sum + b.sum, n: a.n + b.n, from: a.from})
		}
	}
	for _, b := range blocks {
		for i := b.from; i < b.from+b.n; i++ {
			d.centre[row[i]] = b.sum/float64(b.n) + offset[i]
		}
	}
}

// align makes centres whole numbers, the leftmost edge zero, and finds where rows are.
func (d *drawing) align() {
	left := math.Inf(1)
	for spot, centre := range d.centre {
		left = min(left, math.Floor(centre)-float64((d.width(spot)+1)/2))
	}
	for _, row := range d.rows {
		for i, spot := range row {
			d.centre[spot] = math.Round(d.centre[spot] - left)
			if i > 0 {
				d.centre[spot] = max(d.centre[spot], d.centre[row[i-1]]+d.apart(row[i-1], spot))
			}
		}
	}
	top := 0
	for _, row := range d.rows {
		high := 0
		for _, spot := range row {
			if spot < len(d.boxes) {
				high = max(high, d.boxes[spot].Height)
			}
		}
		d.tops, d.highs = append(d.tops, top), append(d.highs, high)
		top += high + gap
	}
}

// picture is what was found.
func (d *drawing) picture() Picture {
	p := Picture{Boxes: make([]Point, len(d.boxes)), Rows: d.rowOf[:len(d.boxes)], Paths: make([]Path, len(d.lines))}
	for spot, centre := range d.centre {
		x := int(centre)
		p.Width = max(p.Width, x+(d.width(spot)+1)/2)
		if spot < len(d.boxes) {
			p.Boxes[spot] = Point{x - (d.boxes[spot].Width+1)/2, d.tops[d.rowOf[spot]]}
			p.Height = max(p.Height, p.Boxes[spot].Y+d.boxes[spot].Height)
		}
	}
	for line, way := range d.ways {
		p.Paths[line] = Path{Points: d.path(way), Back: d.back[line]}
		if d.back[line] {
			slices.Reverse(p.Paths[line].Points)
		}
	}
	return p
}

// path is the points of a way from above to below: straight through rows, across between them.
func (d *drawing) path(way []int) []Point {
	var points []Point
	add := func(x, y int) {
		if n := len(points); n == 0 || points[n-1] != (Point{x, y}) {
			points = append(points, Point{x, y})
		}
	}
	for i, spot := range way {
		x, row := int(d.centre[spot]), d.rowOf[spot]
		top, bottom := d.tops[row], d.tops[row]+d.highs[row]
		switch i {
		case 0:
			add(x, top+d.boxes[spot].Height)
			add(x, bottom)
		case len(way) - 1:
			add(x, top)
		default:
			add(x, top)
			add(x, bottom)
		}
	}
	return points
}
