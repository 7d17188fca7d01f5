//go:build race

package sim

// share of what an ordinary run does that is done: the race detector makes
// everything slow, and finds nothing more in more states.
const share = 40
