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
		{"feature_dns", "feature_tls", false},
		{"feature_a", "feature_b", false},
		{"feature_login", "feature_logni", true},
		{"Feature_Login", "feature_login", true},
		{"", "ab", false},
	} {
		if got := looksLike(test.a, test.b); got != test.want {
			t.Errorf("%s and %s: %v", test.a, test.b, got)
		}
	}
}
