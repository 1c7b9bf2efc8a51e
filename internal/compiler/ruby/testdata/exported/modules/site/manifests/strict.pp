define site::strict(Integer $size) {
}
