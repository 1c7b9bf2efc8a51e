package eventlog

// alive is never asked: runs write no events here.
func alive(string) bool { return false }
