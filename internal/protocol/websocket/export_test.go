package websocket

// RouteForTest lets clients in tests find the version that a path speaks.
var RouteForTest = route

// ShedEvery is the time between two slices of Shed.
const ShedEvery = shedEvery
