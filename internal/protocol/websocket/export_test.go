package websocket

// RouteForTest lets clients in tests find the version that a path speaks.
var RouteForTest = route
