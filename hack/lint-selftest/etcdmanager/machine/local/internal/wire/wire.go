// Package wire belongs to the driver above it.
package wire
