# A compile that eats memory until somebody stops it.
class story::hungry {
  story::devour()
}
