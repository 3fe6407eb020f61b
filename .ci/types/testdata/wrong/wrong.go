// Package wrong is right on Linux.
package wrong
