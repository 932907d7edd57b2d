package main

import testing "k8s.io/cri-api/pkg/apis/testing"

// imageSize is the size of every image in bytes. A kubelet refuses an image that is there without a size. Schedulers
// prefer nodes that have an image of more than 23 MB; smaller ones do not influence where pods of a lab are placed.
const imageSize = 4 << 20

// forget empties the list of calls, which grows with every look of a kubelet.
func forget(service *testing.FakeImageService) {
	service.Lock()
	defer service.Unlock()
	service.Called = nil
}
