package puppet

import "testing"

func TestComesBack(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"": true, "nonsense": true, "6.28.0": false, "7.23.0": false, "7.25.0": false, "7.26.0": true, "7.34.0": true,
		"8.0.0": false, "8.1.0": false, "8.2.0": true, "8.11.0": true, "9.0.0": true, "8": false,
	} {
		if got := ComesBack(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
