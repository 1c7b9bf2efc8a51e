package cli

import "testing"

func TestNamesThatLookAlike(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"Production", "production", true},
		{"prodction", "production", true},
		{"porduction", "production", true},
		{"production", "production", false},
		{"production", "staging", false},
		{"feature_12", "feature_13", false},
		{"feature_1", "feature_100", false},
		{"dev", "test", false},
		{"dev", "deb", true},
		{"dev", "d", false},
		{"", "ab", false},
	} {
		if got := looksLike(test.a, test.b); got != test.want || got != looksLike(test.b, test.a) {
			t.Errorf("%s and %s: %v", test.a, test.b, got)
		}
	}
}
