package rest

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/fault"
)

// SetAside is what a server near its nodes has acknowledged, and the records refused for good. Numbers that are not there are no error.
type SetAside interface {
	// Refused is the first pieces whose numbers are above after, at most n.
	Refused(after uint64, n int) ([]near.Refused, error)
	// Again has pieces tried again, and returns how many there were.
	Again(numbers []uint64) (int, error)
	// Forget deletes pieces, and returns how many there were.
	Forget(numbers []uint64) (int, error)
}

// asides answers for a server near its nodes; on others there is nothing set aside.
type asides struct {
	setAside SetAside
}

func (h *asides) bindings() []binding {
	return []binding{
		answer(api.SetAsideList, h.list),
		answer(api.SetAsideShow, h.show),
		answer(api.SetAsideRetry, func(_ context.Context, r api.SetAsideNumbers) (api.SetAsideCount, error) {
			return settle(r, h.setAside.Again)
		}),
		answer(api.SetAsideDelete, func(_ context.Context, r api.SetAsideNumbers) (api.SetAsideCount, error) {
			return settle(r, h.setAside.Forget)
		}),
	}
}

// none is SetAside of a server that stands near no nodes.
type none struct{}

func (none) Refused(uint64, int) ([]near.Refused, error) { return nil, nil }

func (none) Again([]uint64) (int, error) { return 0, nil }

func (none) Forget([]uint64) (int, error) { return 0, nil }

func (h *asides) list(_ context.Context, r api.PageRequest) (api.List[api.SetAside], error) {
	list := api.List[api.SetAside]{Items: []api.SetAside{}}
	page, err := pageOf(r.After, r.Limit)
	if err != nil {
		return list, err
	}
	after := uint64(0)
	if r.After != "" {
		if after, err = pieceNumber(r.After); err != nil {
			return list, err
		}
	}
	some, err := h.setAside.Refused(after, page.Limit)
	for _, p := range some {
		list.Items = append(list.Items, setAsideOf(p))
	}
	if len(some) == page.Limit {
		list.Next = list.Items[len(some)-1].Number
	}
	return list, err
}

func (h *asides) show(_ context.Context, r api.SetAsideRequest) (shown api.SetAsideContent, err error) {
	number, err := pieceNumber(r.Number)
	if err != nil {
		return shown, err
	}
	some, err := h.setAside.Refused(number-1, 1)
	if err != nil {
		return shown, err
	}
	if len(some) == 0 || some[0].Number != number {
		return shown, &fault.Error{
			Kind: fault.NotFound, Detail: "nothing with the number " + r.Number + " is set aside on this server",
			Hint: "`tutti cluster set-aside list` lists what is",
		}
	}
	shown.SetAside = setAsideOf(some[0])
	what, err := some[0].Content()
	if err == nil {
		shown.Content, err = json.Marshal(what)
	}
	if err != nil { // it is one of the reasons for which it may have been refused
		shown.Problem = fault.Detail(err)
	}
	return shown, nil
}

// maxNumbers is how many pieces may be named together.
const maxNumbers = 1000

func settle(r api.SetAsideNumbers, how func([]uint64) (int, error)) (api.SetAsideCount, error) {
	if len(r.Numbers) == 0 || len(r.Numbers) > maxNumbers {
		return api.SetAsideCount{}, fault.New(fault.Invalid, "field numbers: name 1 to %d, not %d", maxNumbers, len(r.Numbers))
	}
	numbers := make([]uint64, len(r.Numbers))
	for i, text := range r.Numbers {
		n, err := pieceNumber(text)
		if err != nil {
			return api.SetAsideCount{}, err
		}
		numbers[i] = n
	}
	count, err := how(numbers)
	return api.SetAsideCount{Count: count}, err
}

func pieceNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fault.New(fault.Invalid, "%.40q is no number of a piece: they count from 1", text)
	}
	return n, nil
}

func setAsideOf(p near.Refused) api.SetAside {
	return api.SetAside{
		Number: strconv.FormatUint(p.Number, 10), Kind: string(p.Kind), Node: string(p.Node), At: p.At.UTC(), Bytes: p.Bytes, Reason: p.Why,
	}
}
