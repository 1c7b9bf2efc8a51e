package sqlstore

func childMain(string) {}
