//go:build linux && race

package process

const raceDetector = true
