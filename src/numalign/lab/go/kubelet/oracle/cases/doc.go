// Package cases holds the questions put to the kubelet's managers and the answers that come back, one file per family.
//
// The JSON is that of the recorded vectors. A question decodes what is input and skips everything else, so that a
// recorded case can be asked again as it is; an answer is the question with the outputs beside it. Absent, null and
// empty mean different things in this format, and every type here keeps them apart.
package cases
