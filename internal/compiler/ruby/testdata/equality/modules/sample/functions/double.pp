function sample::double(Integer $x) >> Integer { $x * 2 }
