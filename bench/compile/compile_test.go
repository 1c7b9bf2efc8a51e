package main

import "testing"

func TestCheckFindsAnAnswerFromACache(t *testing.T) {
	t.Parallel()
	b := &bench{uuids: map[string]bool{}}
	body := []byte(`{"catalog_uuid": "u-1","resources":[{"exported":false},{"exported":false}],"content":"runs Debian 12.1001\n"}`)
	if err := b.check(body, "small-1", "12.1001"); err != nil || b.resources != 2 {
		t.Errorf("resources %d, err %v", b.resources, err)
	}
	if err := b.check(body, "small-1", "12.1001"); err == nil {
		t.Error("the same catalog again is no error")
	}
	if err := b.check(body, "small-1", "12.1002"); err == nil {
		t.Error("a catalog of other facts is no error")
	}
}
