package compile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestStrikesCountWhatIsTheRowsFault(t *testing.T) {
	t.Parallel()
	crash := &Error{Cause: CauseCrash, Message: "the compiler process died"}
	for name, c := range map[string]struct {
		err  error
		want []int
	}{
		"the disk is full":           {fault.New(fault.Unavailable, "the disk is full"), []int{1, 2, 3, 4, 5}},
		"the store fails":            {errors.New("store"), []int{1, 2, 3, 4, 5}},
		"no compiler could be had":   {compiled(fault.New(fault.Unavailable, "the compiler was killed")), []int{0, 0, 0, 1, 1}},
		"the compiler died over it":  {compiled(crash), []int{1, 2, 3, 4, 5}},
		"a compiler's other failure": {compiled(errors.New("odd")), []int{1, 2, 3, 4, 5}},
	} {
		var s strikes
		var got []int
		for range c.want {
			got = append(got, s.add(7, c.err))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		s.over(7)
		if n := s.add(7, errors.New("x")); n != 1 {
			t.Errorf("%s: an answered row has %d strikes after one more", name, n)
		}
	}
	if mistake := (&Error{Cause: CauseCode}); compiled(mistake) != error(mistake) || compiled(nil) != nil { //nolint:errorlint // itself, with nothing around it
		t.Error("a mistake in the code is no strike")
	}
	if got := gaveUp(9, compiled(crash)); got != crash {
		t.Errorf("a row whose compiler died fails with %v", got)
	}
}
