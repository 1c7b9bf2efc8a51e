package fleet

import "testing"

func TestPlace(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"": "", "site.pp": "site.pp:3", "/etc/puppetlabs/code/environments/production/manifests/site.pp": "manifests/site.pp:3", "/srv/x.pp": "/srv/x.pp:3",
	} {
		if got := Place(file, 3); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}
