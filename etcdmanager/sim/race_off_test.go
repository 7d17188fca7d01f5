//go:build !race

package sim

// share of what an ordinary run does that is done.
const share = 1
