# A function that raises.
class story::raises {
  notice('before')
  story::explode('the powder keg')
}
